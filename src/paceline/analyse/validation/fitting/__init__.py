"""Fits the constants and effects of `paceline.predictor.fitted` to published measurements."""
