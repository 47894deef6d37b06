"""Interleaving of pipelines."""

ENDS = 2
"""Embedding and head, which Megatron Core counts as layers where blocks do not divide."""


def largest_interleave(layers: int, pp: int) -> int:
    """Chunks per stage with the fewest layers that fill all chunks equally.

    The interleaved schedule divides the bubble by the number of chunks (arXiv 2104.04473,
    section 2.2).
    """
    for count in (layers, layers + ENDS):
        if count and count % pp == 0:
            return count // pp
    return 1
