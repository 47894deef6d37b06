"""Predictions scored on published measurements, with hold-outs and null models."""
