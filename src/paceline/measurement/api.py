"""Public functions doctor, check_hosts and run."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

from paceline.errors import InputError, PacelineError
from paceline.importers.import_launches import UserFacts
from paceline.launch.launcher import shell_words
from paceline.measurement.machine_check import Finding, examine
from paceline.measurement.preflight import Preflight, examine_hosts
from paceline.measurement.recording.recorded_launch import RunRequest, run_watched, script_name
from paceline.plugins import PluginKind
from paceline.render.result import Part, PublicResult
from paceline.render.table import Column, Table
from paceline.store import Launch, Status, Store, default_store_path


@dataclass(frozen=True, repr=False)
class DoctorReport(PublicResult):
    """The features of Paceline on this machine, each with a remedy if it does not work."""

    schema: ClassVar[str] = "doctor/1"
    findings: tuple[Finding, ...]

    def summary(self) -> str:
        """The number of features that work."""
        return f"{sum(one.works for one in self.findings)} of {len(self.findings)} checks passed"

    def parts(self) -> list[Part]:
        """One row per check."""
        columns = (Column("check"), Column("works"), Column("details"), Column("fix"))
        found = self.findings
        rows = tuple((f.name, "yes" if f.works else "no", f.detail, f.remedy) for f in found)
        return [Table(columns, rows)]


@dataclass(frozen=True, repr=False)
class HostReport(PublicResult, Preflight):
    """Checks of hosts before training on them, and every link."""

    schema: ClassVar[str] = "hosts/1"

    def summary(self) -> str:
        """The hosts and whether every check passed."""
        return f"{', '.join(self.hosts)}: {'ok' if self.works else 'FAILED'}"

    def parts(self) -> list[Part]:
        """A table of links, and a line per check."""
        from paceline.measurement.host_tables import link_table

        parts: list[Part] = [link_table(self.links)]
        for finding in self.findings:
            mark = "ok    " if finding.works else "FAILED"
            parts.append(f"{mark} {finding.name}: {finding.detail}")
            parts += [f"       fix: {finding.remedy}"] if finding.remedy else []
        return parts


def doctor() -> DoctorReport:
    """Check the installation on this machine, and suggest fixes."""
    from paceline.render.figures import figure_kinds

    return DoctorReport(tuple(examine({PluginKind.FIGURE: figure_kinds})))


def check_hosts(
    *,
    launcher: str = "",
    hosts: str | Sequence[str] = "",
    launcher_options: Sequence[str] = (),
    store: Path | str | None = None,
) -> HostReport:
    """Check hosts before training on them.

    Name resolution, ports, network interface, versions, clocks, and latency and bandwidth of every
    pair.
    """
    from paceline.measurement.choose_launcher import chosen_launcher

    starter = chosen_launcher(launcher, hosts, launcher_options)
    with Store(_path(store)) as opened:
        return HostReport(**vars(examine_hosts(opened, starter)))


@dataclass(frozen=True, repr=False)
class RecordedRun(PublicResult):
    """Launches of a user's command, in order; the last may have failed.

    ``explanation`` breaks the step down if the study also has other numbers of processes.
    """

    schema: ClassVar[str] = "run/1"
    launches: tuple[Launch, ...]
    explanation: PublicResult | None = None

    @property
    def finished(self) -> tuple[Launch, ...]:
        """Launches that finished."""
        return tuple(one for one in self.launches if one.status is Status.FINISHED)

    @property
    def exit_code(self) -> int:
        """The exit code of the command as in a shell; 1 if it succeeded without recording steps."""
        last = self.launches[-1]
        if last.status is Status.FINISHED:
            return 0
        code = next(iter(last.outcome.facts.get("exit_codes", ())), None) or 0
        return 128 - code if code < 0 else code or 1

    def summary(self) -> str:
        """The study and the number of launches."""
        return f"{self.launches[0].study}: {len(self.finished)} of {len(self.launches)} finished"

    def parts(self) -> list[Part]:
        """Throughput of all launches, and the median step of the last or the explanation."""
        from paceline.analysis.configurations import grouped
        from paceline.analysis.launch_tables import throughput_table
        from paceline.render.step_tables import step_table

        groups, last = grouped(self.finished), self.launches[-1]
        parts: list[Part] = [throughput_table(groups)] if groups else []
        timeline = last.outcome.timeline
        if self.explanation is not None:
            parts += ["", *self.explanation.parts()]
        elif last in self.finished and timeline is not None:
            parts += [f"Median step ({timeline.label})", step_table(timeline)]
        return parts

    def warnings(self) -> list[str]:
        """Doubtful results, notes of the recorder, and the reason of a failure."""
        from paceline.analysis.launch_tables import warnings_of

        facts = (one.outcome.facts for one in self.launches)
        notes = dict.fromkeys(note for one in facts for note in one.get("notes", ()))
        last = self.launches[-1]
        failed = [] if self.exit_code == 0 else [f"{last.status}: {last.outcome.reason}"]
        return [*warnings_of(self.finished), *(f"note: {note}" for note in notes), *failed]

    def to_dict(self) -> dict[str, Any]:
        """One launch, or a list of launches."""
        from paceline.analysis.launch_tables import launch_json

        found = [{**launch_json(one), "facts": one.outcome.facts} for one in self.launches]
        return found[0] if len(found) == 1 else {"launches": found}


def run(
    command: str | Sequence[str] = (),
    *,
    recipe: str | None = None,
    values: Mapping[str, str] | None = None,
    program: str | None = None,
    model: str = "",
    batch: int | None = None,
    nodes: int | None = None,
    ranks: int | None = None,
    precision: str = "",
    layers: bool = False,
    warmup_steps: int = 3,
    repeat: int = 1,
    trials: Sequence[str] = (),
    timeout_seconds: float | None = None,
    study: str | None = None,
    keep_secrets: bool = False,
    store: Path | str | None = None,
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
) -> RecordedRun:
    """Run a training command unchanged and record its steps, phases and buckets.

    ``command`` is a list of arguments or a shell line, with variables first
    (``OMP_NUM_THREADS=1 torchrun ...``); or the command of a ``recipe`` with ``values`` of its
    placeholders. ``repeat`` launches it several times, until one fails. ``trials`` are remedies to
    apply to the script, such as ``bucket_cap_mb=1``. Output is copied to ``stdout`` and ``stderr``
    if given. A failure is recorded, not raised. The recorded command has no passwords, tokens and
    keys, unless ``keep_secrets``.
    """
    from paceline.measurement.recording.trials import parse_trials

    variables, arguments, reader = _command(command, recipe, values or {})
    request = RunRequest(
        command=arguments,
        given=UserFacts(model, batch, ranks, nodes, precision),
        study=study or model or script_name(arguments),
        program=program or reader,
        with_layers=layers,
        warmup_steps=warmup_steps,
        timeout_seconds=timeout_seconds,
        variables=variables,
        keep_secrets=keep_secrets,
        trials=parse_trials(trials),
    )
    launches: list[Launch] = []
    with Store(_path(store)) as opened:
        for _ in range(repeat):
            launches.append(run_watched(request, opened, stdout, stderr))
            if launches[-1].status is not Status.FINISHED:
                break
        known = opened.launches(study=launches[-1].study)
    return RecordedRun(tuple(launches), _explained(known, launches[-1], store))


def _explained(
    known: Sequence[Launch], last: Launch, store: Path | str | None
) -> PublicResult | None:
    """The step by cause, if ``last`` finished and its study has other numbers of processes."""
    from paceline.explanation.api import explain

    sizes = {one.world_size for one in known if one.status is Status.FINISHED}
    if last.status is not Status.FINISHED or len(sizes) < 2:
        return None
    with suppress(PacelineError):  # launches without phases have no breakdown
        return explain(last.study, store=_path(store))
    return None


def _command(
    command: str | Sequence[str], recipe_name: str | None, values: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...], str | None]:
    """Environment variables, arguments and log reader of the command to run."""
    from paceline.frameworks.framework_registry import recipe
    from paceline.frameworks.program_recipe import fill

    is_line, reader = isinstance(command, str), None
    arguments = shell_words("the command", str(command)) if is_line else list(command)
    if recipe_name is not None:
        if arguments:
            raise InputError("--recipe and a command are mutually exclusive", "give one of them")
        chosen = recipe(recipe_name)
        arguments, reader = shell_words("the recipe", fill(chosen.command, values)), chosen.reader
    elif values:
        raise InputError("--set requires --recipe", "add --recipe NAME")
    variables: dict[str, str] = {}
    while arguments and "=" in arguments[0] and arguments[0].split("=", 1)[0].isidentifier():
        name, value = arguments.pop(0).split("=", 1)
        variables[name] = value
    if not arguments:
        raise InputError(
            "missing command", "write paceline run -- torchrun --nproc_per_node 2 train.py"
        )
    return variables, tuple(arguments), reader


def _path(store: Path | str | None) -> Path:
    return Path(store) if store is not None else default_store_path()
