"""The site about published studies that were done again: an index and a page for each."""

from paceline.report.reproduced.site import site_pages

__all__ = ["site_pages"]
