"""Evidence from the profile of a machine, for measured jobs and for jobs without launches."""

from dataclasses import replace

from paceline.hardware.machine_profile import MachineProfile
from paceline.predictor.comm.measured_curve import MeasuredCurve
from paceline.predictor.evidence import NO_EVIDENCE, Colocated, Evidence
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS, StepCorrections


def with_profile(evidence: Evidence, profile: MachineProfile | None) -> Evidence:
    """Evidence of a job with the all-reduce and calibration of the machine.

    The job's own launches take precedence.
    """
    if profile is None:
        return evidence
    learnt = profile.training
    ratios = {} if learnt is None else learnt.all_reduce_ratio
    curves = {
        ranks: MeasuredCurve.through([(point.size_bytes, point.seconds) for point in points])
        for ranks, points in profile.all_reduce.items()
    }
    beside = {} if learnt is None else learnt.colocation
    known = {ranks: Colocated(own.slowdown, own.slowest) for ranks, own in beside.items()}
    source = evidence.source
    if learnt is not None:
        source = "; ".join(filter(None, (source, f"this machine as calibrated on {learnt.job}")))
    return replace(
        evidence,
        all_reduce={n: curve.slower(ratios.get(n, 1.0)) for n, curve in curves.items()},
        colocation={**known, **evidence.colocation},
        spread=evidence.spread
        if evidence.spread is not None or learnt is None
        else learnt.step_variation,
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
    learnt = profile.training
    if learnt is None or learnt.compute_factor is None:
        return NO_CORRECTIONS
    return StepCorrections(
        compute_factor=learnt.compute_factor,
        notes=(f"layers {learnt.compute_factor:.2f} times the probed rates, as in {learnt.job}",),
    )
