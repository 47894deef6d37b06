"""A measured curve of all-reduce as evidence for a prediction of as many ranks, or of others."""

from dataclasses import replace

from paceline.errors import InputError
from paceline.measurement.curves import CollectiveCurve
from paceline.predictor.collectives import MeasuredCurve
from paceline.predictor.evidence import Evidence


def with_curve(evidence: Evidence, curve: CollectiveCurve, ranks: int) -> Evidence:
    """Evidence in which all-reduce among ``ranks`` is as measured.

    A curve of other ranks is scaled by what a ring moves over each link, 2 (N-1)/N of the bytes;
    what it cannot tell, the latency of more hops, is said.
    """
    if ranks < 2:
        return evidence
    if curve.ranks == 1:
        raise InputError("a curve of one rank tells nothing of others", "probe at least two")
    known = MeasuredCurve.through([(point.size_bytes, point.seconds) for point in curve.points])
    words = f"all-reduce as measured: {curve.source}"
    if not curve.ranks:
        words += f", taken to be of {ranks} ranks since it does not tell"
    elif curve.ranks != ranks:
        known = known.slower((1 - 1 / ranks) / (1 - 1 / curve.ranks))
        words += f", of {curve.ranks} ranks: scaled to {ranks} as a ring, more hops not counted"
    source = "; ".join(filter(None, (evidence.source, words)))
    return replace(evidence, all_reduce={**evidence.all_reduce, ranks: known}, source=source)
