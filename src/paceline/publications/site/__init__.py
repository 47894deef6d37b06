"""The site about published studies: an index and a page for each."""

from paceline.publications.site.site_pages import site_pages

__all__ = ["site_pages"]
