"""The HTML page about a study."""
