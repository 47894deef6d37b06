"""Measurements that would add evidence to an explanation, with the commands that collect them."""

from paceline.analysis.configurations import LaunchGroup
from paceline.explanation.measured_configuration import MeasuredConfiguration
from paceline.frameworks.framework_registry import frameworks
from paceline.step.step_profile import StepProfile
from paceline.store import Launch


def missing_measurements(
    own: MeasuredConfiguration,
    alone: MeasuredConfiguration | None,
    inside: StepProfile | None,
    no_sync: LaunchGroup | None,
) -> tuple[str, ...]:
    """Missing measurements, each with the command that collects it."""
    launch = own.launch
    found = []
    if alone is None and own.processes > 1:
        found.append(f"step time of one process, and so contention: {_how_alone(launch)}")
    measured = launch.provenance != "imported" and "command" not in launch.job
    measured = measured and not launch.job.get("recorded")
    if own.processes > launch.nodes and no_sync is None and measured and alone is not None:
        again = _measured_again(launch, f"1x{own.processes}", "--no-sync")
        found.append(f"contention without communication: {again}")
    if inside is None and launch.outcome.facts.get("states") is None and not own.parts:
        counts = f"1x1,{launch.nodes}x{own.processes // launch.nodes}"
        how = "use paceline run, or import a trace"
        if measured:
            adapter = frameworks().get(launch.framework)
            kind = "phases" if adapter and "phases" in adapter.instruments else "difference"
            how = _measured_again(launch, counts, f"--instrument none,{kind}")
        found.append(f"where the time goes inside a step: {how}")
    if inside is not None and len(inside.ranks) < own.processes:
        seen = ", ".join(str(rank.rank) for rank in inside.ranks)
        found.append(
            f"phases of {own.processes - len(inside.ranks)} of {own.processes} ranks: only rank "
            f"{seen} was recorded, and others may differ"
        )
    return tuple(found)


def _how_alone(launch: Launch) -> str:
    if launch.provenance == "imported":
        return f"paceline import --study {launch.study} LOG of a one-process run"
    if "command" in launch.job or launch.job.get("recorded"):
        return f"paceline run --study {launch.study} -- python ... with one process"
    return _measured_again(launch, "1x1")


def _measured_again(launch: Launch, topologies: str, options: str = "") -> str:
    """The command that measures the same job with other options."""
    job = f"--model {launch.model} --batch {launch.batch_per_rank} --framework {launch.framework}"
    return f"paceline measure {job} -j {topologies} {options}".rstrip()
