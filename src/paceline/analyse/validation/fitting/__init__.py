"""Fits the constants and effects of `paceline.predict.fitted` to published measurements."""
