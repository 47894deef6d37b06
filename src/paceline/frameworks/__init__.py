"""Training frameworks: one folder each, with a manifest, workers, pins and a predictor profile."""
