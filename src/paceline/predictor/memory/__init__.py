"""Memory of a plan: parameters, activations, buffers, offload, and the probability that it fits."""
