"""What people see: figures, one self-contained page, and tables for the terminal."""
