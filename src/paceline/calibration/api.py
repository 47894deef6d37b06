"""Public functions calibrate and calibrate_links."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from paceline.calibration.machine_fit import MachineFit, fit_machine
from paceline.errors import InputError
from paceline.hardware.machine_profile import MachineProfile
from paceline.measurement.probe.allreduce_curves import CollectiveCurve
from paceline.measurement.probe.machine_probe import current_profile, probe_machine, save_profile
from paceline.render.files import write_text
from paceline.render.result import Part, PublicResult
from paceline.store import Store, default_store_path
from paceline.topology import parse_topology
from paceline.units import plural


def _ignore(_: object) -> None:
    """The default of callbacks."""


@dataclass(frozen=True, repr=False)
class Calibration(PublicResult):
    """The profile of this machine and the fit of its launches, or a curve between hosts.

    ``fit`` is None without launches. ``file`` is where the curve was written.
    """

    schema: ClassVar[str] = "calibrate/3"
    profile: MachineProfile | None = None
    fit: MachineFit | None = None
    curve: CollectiveCurve | None = None
    file: Path | None = None

    def summary(self) -> str:
        """The machine or the hosts, and the model of the fit."""
        if self.curve is not None:
            return f"{self.curve.ranks} ranks on {plural(self.curve.nodes, 'host')}"
        machine = "no profile" if self.profile is None else self.profile.machine
        return f"{machine}; {'no fit' if self.fit is None else f'fit of {self.fit.model}'}"

    def parts(self) -> list[Part]:
        """Tables of the profile and the curve, lines of the fit."""
        from paceline.calibration.calibration_tables import curve_parts, fit_lines, profile_parts

        parts: list[Part] = []
        if self.profile is not None:
            parts += profile_parts(self.profile)
        if self.curve is not None:
            parts += curve_parts(self.curve)
        if self.file is not None:
            parts.append(f"All-reduce curve: {self.file}")
        if self.fit is not None:
            parts += ["", *fit_lines(self.fit)]
        elif self.curve is None:
            parts.append("No launches to fit; collect some with 'paceline measure'.")
        return parts

    def warnings(self) -> list[str]:
        """Doubts about the profile."""
        notes = () if self.profile is None else self.profile.notes
        return [f"warning: {note}" for note in notes]

    def to_dict(self) -> dict[str, Any]:
        """Profile, fit and curve in SI units."""
        return {
            "profile": None if self.profile is None else self.profile.to_json(),
            "fit": None if self.fit is None else asdict(self.fit),
            "curve": None if self.curve is None else self.curve.to_json(),
        }


def calibrate(
    model: str | None = None,
    *,
    probe: bool | None = None,
    ranks: Sequence[int] = (2,),
    threads: int = 1,
    oversubscribe: bool = False,
    store: Path | str | None = None,
    on_stage: Callable[[str], None] = _ignore,
) -> Calibration:
    """Benchmark this machine and fit predictions to its launches; later predictions use both.

    ``probe`` benchmarks GEMM, memory, all-reduce of ``ranks`` and co-location: True again, False
    never, None if the profile is missing or older than a week. The fit is of launches of ``model``
    [the one with most launches]; without launches there is none.
    """
    _check_ranks(ranks, threads, oversubscribe)
    path = Path(store) if store is not None else default_store_path()
    with Store(path, create=probe is not False) as opened:
        profile = None if probe else current_profile(opened, threads)
        if probe is not False and (profile is None or not set(ranks) <= set(profile.all_reduce)):
            profile = probe_machine(opened, ranks, threads, on_stage=on_stage)
        launches = opened.launches()
    if threads != 1 or (model is None and not launches):
        return Calibration(profile)
    fit = fit_machine(launches, profile, model)
    if profile is not None:
        profile = replace(profile, training=fit.training)
        with Store(path) as opened:
            save_profile(opened, profile)
    return Calibration(profile, fit)


def calibrate_links(
    topology: str | None = None,
    *,
    launcher: str = "",
    hosts: str | Sequence[str] = "",
    launcher_options: Sequence[str] = (),
    out: Path | str | None = None,
    store: Path | str | None = None,
    on_stage: Callable[[str], None] = _ignore,
) -> Calibration:
    """Measure all-reduce between hosts, with the message pattern of a training step.

    ``topology`` is nodes x processes [one process per host]. ``out`` names a file for the curve,
    which ``predict`` uses as ``curve``.
    """
    from paceline.json_text import json_text
    from paceline.measurement.choose_launcher import chosen_launcher
    from paceline.measurement.probe.link_probe import probe_links

    starter = chosen_launcher(launcher, hosts, launcher_options)
    nodes, processes = parse_topology(topology) if topology else (len(starter.hosts()), 1)
    if nodes * processes < 2:
        raise InputError("all-reduce needs at least 2 ranks", "write -j 2x1 or more")
    on_stage(f"all-reduce on {nodes}x{processes} ranks")
    with Store(Path(store) if store is not None else default_store_path()) as opened:
        curve = probe_links(opened, starter, nodes, processes)
    if out is not None:
        write_text(out, json_text("curve", 1, curve.to_json()))
    return Calibration(curve=curve, file=None if out is None else Path(out))


def _check_ranks(ranks: Sequence[int], threads: int, oversubscribe: bool) -> None:
    from paceline.launch.launcher import own_cores

    if not ranks or min(ranks) < 2 or threads < 1:
        raise InputError(
            "all-reduce needs at least 2 ranks with at least 1 thread each", "write --ranks 2"
        )
    cores = own_cores()
    if max(ranks) * threads > cores and not oversubscribe:
        raise InputError(
            f"{max(ranks)} ranks need {max(ranks) * threads} cores; this machine has {cores}",
            "use fewer --ranks, or add --oversubscribe to share cores",
        )
