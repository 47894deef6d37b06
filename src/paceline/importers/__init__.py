"""Readers of logs and traces that other programs write, and their import as launches."""
