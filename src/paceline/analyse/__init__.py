"""Statistics over launches, calibration, explanation and validation."""
