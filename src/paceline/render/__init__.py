"""Output: figures, self-contained pages, and tables for the terminal."""
