"""Evidence from the profile of a machine, or from a measured all-reduce curve."""

from dataclasses import replace

from paceline.errors import InputError
from paceline.hardware.machine_profile import MachineProfile
from paceline.measurement.probe.allreduce_curves import CollectiveCurve
from paceline.predictor.comm.measured_curve import MeasuredCurve
from paceline.predictor.evidence import NO_EVIDENCE, Colocated, Evidence
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS, StepCorrections


def with_profile(evidence: Evidence, profile: MachineProfile | None) -> Evidence:
    """Evidence of a job with the all-reduce and calibration of the machine.

    The job's own launches take precedence.
    """
    if profile is None:
        return evidence
    training = profile.training
    ratios = {} if training is None else training.all_reduce_ratio
    curves = {
        ranks: MeasuredCurve.through([(point.size_bytes, point.seconds) for point in points])
        for ranks, points in profile.all_reduce.items()
    }
    colocation = {} if training is None else training.colocation
    known = {ranks: Colocated(own.slowdown, own.slowest) for ranks, own in colocation.items()}
    source = evidence.source
    if training is not None:
        source = "; ".join(filter(None, (source, f"this machine as calibrated on {training.job}")))
    return replace(
        evidence,
        all_reduce={n: curve.slower(ratios.get(n, 1.0)) for n, curve in curves.items()},
        colocation={**known, **evidence.colocation},
        spread=evidence.spread
        if evidence.spread is not None or training is None
        else training.step_variation,
        source=source,
    )


def machine_evidence(profile: MachineProfile) -> Evidence:
    """Evidence for jobs without launches: the probe, and the calibration if there is one.

    Without co-located launches, the slowdown of co-located processes is the larger of those of
    GEMM and memory copies in the probe.
    """
    probed = {
        ranks: Colocated(max(own.arithmetic, own.memory, 1.0))
        for ranks, own in profile.colocation.items()
    }
    found = with_profile(NO_EVIDENCE, profile)
    source = (
        found.source or "rates of this machine from its probe; 'paceline calibrate' refines them"
    )
    return replace(found, colocation={**probed, **found.colocation}, source=source)


def machine_corrections(profile: MachineProfile) -> StepCorrections:
    """Calibration of modelled layers: their slowdown against the probed rates."""
    training = profile.training
    if training is None or training.compute_factor is None:
        return NO_CORRECTIONS
    return StepCorrections(
        compute_factor=training.compute_factor,
        notes=(
            f"layers {training.compute_factor:.2f} times the probed rates, as in {training.job}",
        ),
    )


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
        # Bytes per link of a ring all-reduce are 2 (N - 1) / N of the message.
        known = known.slower((1 - 1 / ranks) / (1 - 1 / curve.ranks))
        note += (
            f", {curve.ranks} ranks, scaled to {ranks} as a ring without the latency of more hops"
        )
    source = "; ".join(filter(None, (evidence.source, note)))
    return replace(evidence, all_reduce={**evidence.all_reduce, ranks: known}, source=source)
