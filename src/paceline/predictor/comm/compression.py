"""Gradient compression as a cost: fewer bytes on the wire for more passes over memory."""

from dataclasses import dataclass
from enum import StrEnum

from paceline.errors import InputError

_INDEX_BYTES = 4


class CompressionKind(StrEnum):
    """How a gradient is compressed before it is sent."""

    NONE = "none"
    FP16 = "fp16"
    """Rounded to 16 bits, then all-reduced."""
    TOP_K = "top_k"
    """The largest entries with their indices; all-gathered because indices differ by worker."""


@dataclass(frozen=True)
class Compression:
    """A kind of compression; ``density`` is the fraction of entries that ``top_k`` keeps."""

    kind: CompressionKind = CompressionKind.NONE
    density: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.density <= 1:
            raise InputError(
                f"density must be in (0, 1] (got {self.density})", "give a fraction, e.g. 0.01"
            )

    @property
    def gathers(self) -> bool:
        """Whether messages are all-gathered instead of all-reduced."""
        return self.kind is CompressionKind.TOP_K

    def sent_bytes(self, gradient_bytes: float, element_bytes: int) -> float:
        """Bytes that one worker sends for a gradient of ``gradient_bytes``."""
        elements = gradient_bytes / element_bytes
        match self.kind:
            case CompressionKind.NONE:
                return gradient_bytes
            case CompressionKind.FP16:
                return elements * min(2, element_bytes)
            case CompressionKind.TOP_K:
                return elements * self.density * (element_bytes + _INDEX_BYTES)

    @property
    def memory_passes(self) -> float:
        """Memory passes over the gradient for compression and decompression.

        Rounding reads and writes once each way. Top-k selection by a threshold reads twice (find
        the threshold, select entries) and reads and writes the residual.
        """
        match self.kind:
            case CompressionKind.NONE:
                return 0.0
            case CompressionKind.FP16:
                return 3.0
            case CompressionKind.TOP_K:
                return 5.0


NO_COMPRESSION = Compression()
