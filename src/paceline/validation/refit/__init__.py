"""Refits corrections and constants without the rows that a hold-out leaves out."""
