"""The explorer: interactive predictions in a browser."""
