"""One module per command; `paceline.cli.main` loads each when it is called."""
