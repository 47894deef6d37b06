"""Ways of dividing tokens and of leaving the device that a plan chooses between."""

from enum import StrEnum


class ContextForm(StrEnum):
    """How devices that share out the tokens of a sample meet keys and values of each other."""

    RING = "ring"
    """Keys and values go round while attention computes; each device has a piece from the
    beginning and one from the end, so that a causal mask leaves all of them as much."""
    RING_IN_ORDER = "ring_in_order"
    """The same with neighbouring tokens on a device: of a causal mask the last one sees most."""
    GATHER = "gather"
    """All keys and values are gathered under the first part of attention; balanced."""
    ULYSSES = "ulysses"
    """Heads are exchanged for tokens before attention, and back after it."""


class Offload(StrEnum):
    """What leaves the device for the memory of its host."""

    OPTIMISER = "optimiser"
    """State of the optimiser, which updates on the host."""
    ACTIVATIONS = "activations"
    """What is kept from forward to backward."""
