"""Options that several commands share, with one spelling and one meaning."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from paceline.errors import InputError
from paceline.places import Place, parse_counts, parse_places
from paceline.units import parse_seconds

if TYPE_CHECKING:
    from paceline.analyse.sharing_out import Workers

F = TypeVar("F", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A number in a range; click lets NaN through, which is in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Click's own, and no NaN."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


def study_name(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """A name that fits a line and a file: refused where it is empty or has other characters."""
    if name is not None and (not name.strip() or not name.isprintable() or "/" in name):
        raise InputError(
            f"{name!r} is no name for a study", "give letters, digits, dots and dashes"
        )
    return name


def timeout_seconds(text: str | None) -> float | None:
    """Seconds of ``--timeout``, which must leave some time."""
    if text is None:
        return None
    seconds = parse_seconds(text)
    if seconds <= 0:
        raise InputError(f"a timeout of '{text}' leaves no time", "write it like 10min")
    return seconds


class AliasedOption(click.Option):
    """An option of several spellings, of which help shows the first."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Click's own, without the other spellings."""
        spellings = self.opts
        self.opts = spellings[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = spellings


class Options(Protocol):
    """A decorator of a command."""

    def __call__(self, function: F, /) -> F:
        """The command with more options."""
        ...


def together(*options: Options) -> Options:
    """One decorator that adds ``options``, in the order in which help is to show them."""

    def added(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return added


store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    is_eager=True,  # an argument that names a study looks into it
    help="Database of launches [default: $PACELINE_STORE or .paceline/paceline.db].",
)

seq_option = click.option(
    "--seq",
    "--sequence",
    "seq",
    cls=AliasedOption,
    type=int,
    help="Tokens per sample [default: as published].",
)

seed_option = click.option(
    "--seed",
    default=1,
    show_default=True,
    help="Seed for launch order, initial weights and data.",
)


def out_option(name: str, words: str) -> Callable[[F], F]:
    """Add an option for a file that is written."""
    return click.option(name, type=click.Path(path_type=Path, dir_okay=False), help=words)


def figure_option(name: str, words: str) -> Callable[[F], F]:
    """Add an option for a figure that is written as SVG, PDF or PNG, by the ending of its name."""

    def checked(
        context: click.Context, parameter: click.Parameter, path: Path | None
    ) -> Path | None:
        if path is not None:
            from paceline.report.paper.figure_files import check_figure_path

            check_figure_path(path)
        return path

    return click.option(
        name,
        type=click.Path(path_type=Path, dir_okay=False),
        callback=checked,
        help=f"{words} (.svg, .pdf, .png).",
    )


def workers_option(function: F) -> F:
    """Add ``--workers``, checked before anything starts."""

    def checked(context: click.Context, parameter: click.Parameter, words: str) -> "Workers":
        from paceline.analyse.sharing_out import workers_given

        return workers_given(words)

    return click.option(
        "--workers",
        default="1",
        show_default=True,
        callback=checked,
        help="Processes, or a cluster that is up: tcp://HOST:8786 (Dask), ray://HOST:10001. "
        "The answer does not depend on it.",
    )(function)


study_options = together(
    click.option("--model", default="resnet44", show_default=True, help="A network of the zoo."),
    click.option("--batch", default=64, show_default=True, help="Samples per process and step."),
    seq_option,
    click.option(
        "-j", "places", default="1x1", show_default=True, help="NODESxPROCESSES, by commas."
    ),
    click.option(
        "--launches", default=3, show_default=True, help="Launches of each configuration."
    ),
    click.option("--steps", default=10, show_default=True, help="Counted steps of a launch."),
    click.option(
        "--warmup-steps", default=3, show_default=True, help="Steps timed but not counted."
    ),
    click.option(
        "--threads",
        default="1",
        show_default=True,
        help="Threads of each process, which are its cores too; by commas.",
    ),
    click.option(
        "--oversubscribe", is_flag=True, help="Allow more processes x threads than cores."
    ),
    click.option(
        "--precision",
        type=click.Choice(["fp32", "bf16"]),
        default="fp32",
        show_default=True,
        help="Width of numbers in training.",
    ),
    click.option(
        "--timeout", default="10min", show_default=True, help="Longest time a launch may take."
    ),
    seed_option,
    click.option(
        "--study",
        "name",
        callback=study_name,
        help="Name of the study [default: model and time].",
    ),
)
"""What a study runs, how often, and what it is called."""


def study_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The `study_options` as keywords of `paceline.Study`; ``--timeout`` is left in ``options``."""
    own = ("model", "batch", "seq", "launches", "steps", "warmup_steps", "threads", "precision")
    chosen = {name: options[name] for name in (*own, "oversubscribe", "seed", "name")}
    return {**chosen, "processes": options["places"], "store": options["store_path"]}


training_options = together(
    click.option(
        "--data",
        default="synthetic",
        show_default=True,
        help="What is trained on: digits, cifar10:DIRECTORY, image_folder:DIRECTORY, npz:FILE.",
    ),
    click.option(
        "--epochs",
        type=click.IntRange(1),
        help="Train so often through --data, each launch from its own seed, and say the accuracy.",
    ),
    click.option("--learning-rate", default=0.01, show_default=True, help="Of the optimiser."),
    click.option(
        "--learning-rate-rule",
        type=click.Choice(["constant", "linear", "root"]),
        default="constant",
        show_default=True,
        help="How the learning rate follows the global batch.",
    ),
    click.option("--target-accuracy", help="Tell the time until this accuracy, as 95%."),
    click.option(
        "--accuracy-margin",
        default="1%",
        show_default=True,
        help="Accuracies that differ by less are the same.",
    ),
    click.option(
        "--resources",
        is_flag=True,
        help="Sample processors, memory, network, GPUs and power beside each launch.",
    ),
    click.option("--node-price", type=float, help="Price of a node for an hour."),
)
"""Real data, epochs over it, and what their accuracy is held to."""


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
        help="Run in a lab of its own, such as link=1gbit+delay=200us+speed=0.5; may be repeated.",
    ),
    click.option(
        "--emulate", default="", help="Sleep as long as this device would compute, such as v100."
    ),
    click.option(
        "--time-scale",
        default=1.0,
        show_default=True,
        help="Stretch the times of the emulated device, for links slower by as much.",
    ),
)
"""Links that are shaped and devices that are emulated."""


def lab_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The `lab_options` as keywords of `paceline.Study`."""
    given = {name: options[name] for name in ("emulate", "time_scale")}
    return {**given, "labs": list(options["labs"])}


launcher_options = together(
    click.option(
        "--launcher",
        default="",
        help="What starts the processes [default: local, or what the framework needs].",
    ),
    click.option("--hosts", default="", help="Machines of the nodes by name, by commas."),
    click.option(
        "--launcher-option",
        "launcher_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the launcher, such as partition=debug; may be repeated.",
    ),
)
"""What starts processes, and where."""
LAUNCHER_OPTIONS = ("launcher", "hosts", "launcher_options")


def launcher_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Those of the `launcher_options` that were given, as keywords of `paceline.Study`."""
    given = {**options, "launcher_options": list(options["launcher_options"])}
    return {name: given[name] for name in LAUNCHER_OPTIONS if given[name]}


def places_given(places: str | None, nodes: str | None) -> list[dict[str, int]]:
    """Each place of ``-j`` or ``--nodes`` as keywords; one of none for the whole cluster."""
    if places is not None and nodes is not None:
        raise InputError("-j and --nodes both say where", "give one of them")
    if nodes is not None:
        return [{"nodes": count} for count in parse_counts(nodes, "nodes", "--nodes")]
    if places is not None:
        return [{"nodes": n, "processes": p} for n, p in parse_places(places)]
    return [{}]


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Names and values of ``--set NAME=VALUE`` options."""
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"'{text}' is not NAME=VALUE", "write --set ranks=2")
        settings[name] = value
    return settings


def parse_one_place(text: str | None) -> tuple[int | None, int | None]:
    """Nodes and processes in all of ``2x4``; neither is known without a text."""
    if text is None:
        return None, None
    places: list[Place] = parse_places(text)
    if len(places) != 1:
        raise InputError(f"'{text}' is more than one place", "give one: -j 2x4")
    nodes, processes = places[0]
    return nodes, nodes * processes
