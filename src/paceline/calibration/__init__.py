"""Launches and probes of a machine as evidence for predictions of it."""
