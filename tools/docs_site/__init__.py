"""The documentation as static pages, with search and a gallery of figures."""
