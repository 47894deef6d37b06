"""What `import paceline` offers: names and numbers as people write them, one call each."""
