"""Figures as SVG, PDF and PNG files for papers and slides."""
