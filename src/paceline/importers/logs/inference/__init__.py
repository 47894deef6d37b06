"""Infer step times from the log of any program, without a reader written for it."""
