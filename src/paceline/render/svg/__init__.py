"""A small drawing layer: scales, axes, legends and marks as SVG text, themed by CSS variables."""
