"""The textbook: closed forms on one kind of link, and bus bandwidth, to hold the model to."""

import numpy as np

from paceline.naming import look_up
from paceline.predictor.comm.collective_algorithms import algorithms
from paceline.predictor.comm.rank_group import Group, Numbers


def closed_form_seconds(
    operation: str,
    algorithm: str,
    size_bytes: Numbers,
    workers: Numbers,
    *,
    alpha_seconds: Numbers,
    beta_seconds_per_byte: Numbers,
    gamma_seconds_per_byte: Numbers = 0.0,
) -> Numbers:
    """Seconds of ``operation`` by ``algorithm`` among ``workers`` on equal links.

    ``alpha_seconds`` is paid per message in series, ``beta_seconds_per_byte`` per byte sent,
    ``gamma_seconds_per_byte`` per byte summed. Vectorised over every number.
    """
    known = algorithms()
    table = look_up("collective operation", operation, known, f"one of {', '.join(known)}")
    count = look_up(f"{operation} algorithm", algorithm, table, f"one of {', '.join(table)}")
    counts = count(Group(workers, 1))
    messages = counts.inner_messages + counts.outer_messages
    volume = counts.inner_volume + counts.outer_volume
    sizes = np.asarray(size_bytes, dtype=np.float64)
    seconds = (
        messages * alpha_seconds
        + volume * sizes * beta_seconds_per_byte
        + counts.reduced * sizes * gamma_seconds_per_byte
    )
    return float(seconds) if seconds.ndim == 0 else seconds


def bus_bandwidth(size_bytes: Numbers, workers: Numbers, seconds: Numbers) -> Numbers:
    """2 (N-1)/N M / t in bytes/s: comparable between numbers of workers and with a link's rate."""
    return 2.0 * (workers - 1.0) / workers * size_bytes / seconds
