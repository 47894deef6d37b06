"""The built-in models, devices, links, clusters and frameworks as tables."""
