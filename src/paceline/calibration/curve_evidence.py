"""A measured all-reduce curve as evidence for a prediction."""

from dataclasses import replace

from paceline.errors import InputError
from paceline.measurement.probe.allreduce_curves import CollectiveCurve
from paceline.predictor.comm.measured_curve import MeasuredCurve
from paceline.predictor.evidence import Evidence


def with_curve(evidence: Evidence, curve: CollectiveCurve, ranks: int) -> Evidence:
    """Evidence with a measured all-reduce among ``ranks``.

    A curve of another number of ranks is scaled by the traffic of a ring per link, 2 (N-1)/N of
    the bytes. The latency of more hops is not included, which a note reports.
    """
    if ranks < 2:
        return evidence
    if curve.ranks == 1:
        raise InputError("the all-reduce curve is for one rank", "probe at least two ranks")
    known = MeasuredCurve.through([(point.size_bytes, point.seconds) for point in curve.points])
    note = f"measured all-reduce: {curve.source}"
    if not curve.ranks:
        note += f", assumed for {ranks} ranks (the file does not state them)"
    elif curve.ranks != ranks:
        known = known.slower((1 - 1 / ranks) / (1 - 1 / curve.ranks))
        note += (
            f", {curve.ranks} ranks, scaled to {ranks} as a ring without the latency of more hops"
        )
    source = "; ".join(filter(None, (evidence.source, note)))
    return replace(evidence, all_reduce={**evidence.all_reduce, ranks: known}, source=source)
