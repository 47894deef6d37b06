"""Measurement: jobs, the run loop, probes, resource sampling, recording of users' scripts."""
