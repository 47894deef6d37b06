"""Sections of the page of a study, in the order of a paper."""
