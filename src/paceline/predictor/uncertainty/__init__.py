"""Corrections fitted to published measurements, and the interval of a prediction."""
