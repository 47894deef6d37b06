"""Options shared by several commands."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from paceline.cli.help_sections import together
from paceline.errors import InputError
from paceline.topology import Topology, parse_topologies
from paceline.units import parse_seconds
from paceline.user_files import check_store_path

if TYPE_CHECKING:
    from paceline.parallel_map import Workers

F = TypeVar("F", bound=Callable[..., Any])


class IntegerRange(click.IntRange):
    """An integer in a range, shown as ``INTEGER`` in help."""

    name = "integer"


class FiniteRange(click.FloatRange):
    """A number in a range, NaN excluded: comparisons with NaN are false, so click accepts it."""

    name = "float"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert as click does and reject NaN."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


def study_name(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """Check that a study name can be printed and used as a file name."""
    if name is not None and (not name.strip() or not name.isprintable() or "/" in name):
        raise InputError(f"invalid study name {name!r}", "use letters, digits, dots and dashes")
    return name


def timeout_seconds(text: str | None) -> float | None:
    """Seconds of ``--timeout``."""
    if text is None:
        return None
    seconds = parse_seconds(text)
    if seconds <= 0:
        raise InputError(
            f"--timeout must be greater than 0 (got '{text}')", "use a value such as 10min"
        )
    return seconds


class AliasedOption(click.Option):
    """An option with several spellings; help shows the first."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The help record of the first spelling."""
        spellings = self.opts
        self.opts = spellings[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = spellings


def _store_path(
    context: click.Context, parameter: click.Parameter, path: Path | None
) -> Path | None:
    """Check the path early: some commands look for the store before they open it."""
    if path is not None:
        check_store_path(path)
    return path


store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    callback=_store_path,
    is_eager=True,  # study arguments read the store
    help="Database of launches [default: $PACELINE_STORE or .paceline/paceline.db].",
)

seq_option = click.option(
    "--seq",
    "--sequence",
    "seq",
    cls=AliasedOption,
    type=int,
    help="Sequence length in tokens [default: the published one].",
)

emit_option = click.option(
    "--emit",
    type=click.Choice(["torchtitan", "megatron", "deepspeed", "fsdp"]),
    help="Print the plan as flags or settings of a training program.",
)

seed_option = click.option(
    "--seed",
    default=1,
    show_default=True,
    help="Seed of launch order, initial weights and data.",
)


def out_option(name: str, text: str) -> Callable[[F], F]:
    """Add an option for an output file."""
    return click.option(name, type=click.Path(path_type=Path, dir_okay=False), help=text)


def figure_option(name: str, text: str) -> Callable[[F], F]:
    """Add an option for a figure file; the suffix selects SVG, PDF or PNG."""

    def checked(
        context: click.Context, parameter: click.Parameter, path: Path | None
    ) -> Path | None:
        if path is not None:
            from paceline.render.figure_files.figure_files import check_figure_path

            check_figure_path(path)
        return path

    return click.option(
        name,
        type=click.Path(path_type=Path, dir_okay=False),
        callback=checked,
        help=f"{text} (.svg, .pdf, .png).",
    )


def workers_option(function: F) -> F:
    """Add ``--workers``, checked before the command starts."""

    def checked(context: click.Context, parameter: click.Parameter, value: str) -> "Workers":
        from paceline.parallel_map import parse_workers

        return parse_workers(value)

    return click.option(
        "--workers",
        default="1",
        show_default=True,
        callback=checked,
        metavar="N|ADDRESS",
        help="Worker processes, or the address of a running cluster: tcp://HOST:8786 (Dask), "
        "ray://HOST:10001 (Ray). Results are identical.",
    )(function)


study_options = together(
    click.option(
        "--model",
        metavar="NAME",
        default="resnet44",
        show_default=True,
        help="Built-in model; see 'paceline models'.",
    ),
    click.option("--batch", default=64, show_default=True, help="Samples per process and step."),
    seq_option,
    click.option(
        "-j",
        "topologies",
        metavar="NODESxPROCESSES[,...]",
        default="1x1",
        show_default=True,
        help="Nodes x processes per node; comma-separated.",
    ),
    click.option("--launches", default=3, show_default=True, help="Launches per configuration."),
    click.option("--steps", default=10, show_default=True, help="Measured steps per launch."),
    click.option(
        "--warmup-steps", default=3, show_default=True, help="Warm-up steps, excluded from results."
    ),
    click.option(
        "--threads",
        metavar="N[,N]",
        default="1",
        show_default=True,
        help="Threads (and pinned cores) per process; comma-separated.",
    ),
    click.option(
        "--oversubscribe", is_flag=True, help="Allow more processes x threads than cores."
    ),
    click.option(
        "--precision",
        type=click.Choice(["fp32", "bf16"]),
        default="fp32",
        show_default=True,
        help="Numeric precision of training.",
    ),
    click.option(
        "--timeout",
        metavar="DURATION",
        default="10min",
        show_default=True,
        help="Time limit of a launch.",
    ),
    seed_option,
    click.option(
        "--study",
        "name",
        metavar="NAME",
        callback=study_name,
        help="Name of the study [default: model and time].",
    ),
    section="Study",
)
"""Job, repetitions and name of a study."""


def study_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The `study_options` except ``--timeout`` as keywords of `paceline.Study`."""
    own = ("model", "batch", "seq", "launches", "steps", "warmup_steps", "threads", "precision")
    chosen = {name: options[name] for name in (*own, "oversubscribe", "seed", "name")}
    return {**chosen, "processes": options["topologies"], "store": options["store_path"]}


training_options = together(
    click.option(
        "--data",
        metavar="DATASET",
        default="synthetic",
        show_default=True,
        help="Dataset: synthetic, digits, cifar10:DIRECTORY, image_folder:DIRECTORY, npz:FILE.",
    ),
    click.option(
        "--epochs",
        type=IntegerRange(1),
        help="Epochs to train; each launch uses its own seed and reports accuracy.",
    ),
    click.option("--learning-rate", default=0.01, show_default=True, help="Learning rate."),
    click.option(
        "--learning-rate-rule",
        type=click.Choice(["constant", "linear", "root"]),
        default="constant",
        show_default=True,
        help="Scaling of the learning rate with the global batch size.",
    ),
    click.option(
        "--target-accuracy",
        metavar="PERCENT",
        help="Report the time to reach this accuracy, such as 95%.",
    ),
    click.option(
        "--accuracy-margin",
        metavar="PERCENT",
        default="1%",
        show_default=True,
        help="Equivalence margin of accuracies.",
    ),
    click.option(
        "--resources",
        is_flag=True,
        help="Sample CPU, memory, network, GPU and power usage during each launch.",
    ),
    click.option("--node-price", type=float, help="Price of a node per hour."),
    section="Training",
)
"""Dataset, epochs, accuracy target and resource sampling of a study."""


def training_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The `training_options` as keywords of `paceline.Study`."""
    from paceline.units import parse_percent

    target = options["target_accuracy"]
    return {
        "data": options["data"],
        "epochs": options["epochs"] or 0,
        "learning_rate": options["learning_rate"],
        "learning_rate_rule": options["learning_rate_rule"],
        "target_accuracy": None if target is None else parse_percent(target),
        "accuracy_margin": parse_percent(options["accuracy_margin"]),
        "resources": options["resources"],
        "node_price": options["node_price"],
    }


lab_options = together(
    click.option(
        "--lab",
        "labs",
        multiple=True,
        metavar="SETTINGS",
        help="Run in a virtual cluster, such as link=1gbit+delay=200us+speed=0.5; repeatable.",
    ),
    click.option(
        "--emulate",
        metavar="DEVICE",
        default="",
        help="Emulate a device, such as v100: sleep instead of computing.",
    ),
    click.option(
        "--time-scale",
        default=1.0,
        show_default=True,
        help="Slow down the emulated device by this factor (use with equally slower links).",
    ),
    section="Emulation",
)
"""Virtual clusters and emulated devices."""


def lab_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The `lab_options` as keywords of `paceline.Study`."""
    given = {name: options[name] for name in ("emulate", "time_scale")}
    return {**given, "labs": list(options["labs"])}


launcher_options = together(
    click.option(
        "--launcher",
        metavar="NAME",
        default="",
        help="Launcher of the processes [default: local, or the one the framework requires].",
    ),
    click.option(
        "--hosts",
        metavar="HOST[,HOST]",
        default="",
        help="Host names of the nodes; comma-separated.",
    ),
    click.option(
        "--launcher-option",
        "launcher_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="Option of the launcher, such as partition=debug; repeatable.",
    ),
    section="Launcher",
)
"""Launcher, its options and hosts."""
LAUNCHER_OPTIONS = ("launcher", "hosts", "launcher_options")


def launcher_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The `launcher_options` given by the user, as keywords of `paceline.Study`."""
    given = {**options, "launcher_options": list(options["launcher_options"])}
    return {name: given[name] for name in LAUNCHER_OPTIONS if given[name]}


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Names and values of ``--set NAME=VALUE`` options."""
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"expected NAME=VALUE, got '{text}'", "write --set ranks=2")
        settings[name] = value
    return settings


def parse_single_topology(text: str | None) -> tuple[int | None, int | None]:
    """Nodes and total processes of ``2x4``; (None, None) without a text."""
    if text is None:
        return None, None
    topologies: list[Topology] = parse_topologies(text)
    if len(topologies) != 1:
        raise InputError(f"expected one topology, got '{text}'", "give one: -j 2x4")
    nodes, processes = topologies[0]
    return nodes, nodes * processes
