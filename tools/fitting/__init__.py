"""Fits the constants and corrections of the predictor to published measurements."""
