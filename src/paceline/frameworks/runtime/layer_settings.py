"""Settings of layers that a graph does not name: the same in every framework."""

LSTM_GATES = 4
"""Input, forget, cell and output, in this order."""

NORM_EPSILON = 1e-5
"""What is added to the variance by batch and layer normalisation, as in PyTorch."""

NORM_NEW_SHARE = 0.1
"""How much of a batch's statistics goes into the running ones, as in PyTorch."""

RMS_EPSILON = 1e-6
"""What is added to the mean of squares."""

RESPONSE_ALPHA, RESPONSE_BETA, RESPONSE_K = 1e-4, 0.75, 2.0
"""Settings of local response normalisation: of AlexNet's authors, the sum divided by its size."""

ROTARY_BASE = 10000.0
"""Pair i of h turns by ``ROTARY_BASE ** (-i / h)`` from one position to the next."""
