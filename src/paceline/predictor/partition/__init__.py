"""The share of each layer that one device holds and computes under a plan."""
