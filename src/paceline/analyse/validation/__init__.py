"""Validation: predictions against published measurements, beside null models."""
