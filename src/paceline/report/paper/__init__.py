"""Figures as files for papers and slides: SVG, PDF and PNG from one drawing, by name of file."""
