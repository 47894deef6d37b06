"""Models, clusters, plans and training runs as users describe them, resolved to values."""
