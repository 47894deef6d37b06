"""Settings of layers and optimisers that are not in a job; equal in all frameworks."""

ADAM_BETAS, ADAM_EPSILON = (0.9, 0.999), 1e-8
"""Decay of Adam's moments, and the number added to the root of the second, as in PyTorch."""

LSTM_GATES = 4
"""Input, forget, cell and output, in this order."""

NORM_EPSILON = 1e-5
"""Added to the variance in batch and layer normalisation, as in PyTorch."""

NORM_NEW_SHARE = 0.1
"""Weight of a batch in the running statistics (PyTorch's ``momentum``)."""

RMS_EPSILON = 1e-6
"""Added to the mean of squares."""

RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K = 1e-4, 0.75, 2.0
"""Settings of local response normalisation: those of AlexNet, with the sum divided by its size."""

ROTARY_BASE = 10000.0
"""Pair i of h rotates by ``ROTARY_BASE ** (-i / h)`` per position."""
