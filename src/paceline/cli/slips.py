"""Slips of the command line: what was probably meant, said with the error."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import click
from click.core import ParameterSource
from click.exceptions import NoSuchOption

from paceline.cli.say import say
from paceline.errors import PacelineError
from paceline.naming import nearest

_SYNONYMS = {
    "batch": ("batch-size", "bs", "b", "local-batch", "per-device-batch", "batchsize"),
    "global-batch": ("global-batch-size", "gbs", "total-batch"),
    "micro-batch": ("micro-batch-size", "mbs", "microbatch"),
    "seq": ("seq-len", "seq-length", "sequence-length", "context", "tokens-per-sample"),
    "tp": ("tensor-parallel", "tensor-parallel-size", "tensor-model-parallel-size"),
    "pp": ("pipeline-parallel", "pipeline-parallel-size", "pipeline-model-parallel-size"),
    "cp": ("context-parallel", "context-parallel-size"),
    "ep": ("expert-parallel", "expert-parallel-size", "expert-model-parallel-size"),
    "zero": ("zero-stage", "sharding", "fsdp"),
    "precision": ("dtype", "fp16", "bf16", "fp8", "amp"),
    "link": ("bandwidth", "network", "interconnect"),
    "recompute": ("activation-checkpointing", "checkpointing", "ac"),
    "optimiser": ("optimizer",),
    "j": ("gpus", "num-gpus", "ngpus", "devices", "num-devices", "world-size", "nproc", "np"),
}
"""What other programs call our options."""
_USES = {"j": "-j NODESxPROCESSES, as in -j 2x8"}
_COUNT = re.compile(r"'([0-9.]+(?:[eE][0-9]+)?)\s*([kKmM]?)'")
_SCALES = {"": (1,), "k": (1000, 1024), "m": (1_000_000, 1_048_576)}


def explained(error: click.ClickException) -> tuple[str, str]:
    """The message of a mistake and a hint at what was probably meant."""
    message, context = error.format_message(), getattr(error, "ctx", None)
    if context is None:
        return message, ""
    usual = f"'{context.command_path} --help' shows the options"
    if isinstance(error, NoSuchOption):
        return _unknown_option(error, context, usual)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return message, _missing(error.param, context) or usual
    extra = re.match(r"Got unexpected extra arguments? \((.*)\)", message)
    if extra is not None:
        words = extra[1].split()
        return message, _meant(words[0], context) or usual
    if "is not a valid integer" in message:
        whole = message.replace("is not a valid integer range", "is no whole number")
        return whole.replace("is not a valid integer", "is no whole number"), _written_out(message)
    unknown = re.match(r"No such command '(.*)'", message)
    if unknown is not None and isinstance(context.command, click.Group):
        return message, _of_group(unknown[1], context, context.command)
    return message, usual


def warn_of_repeated(command: click.Command, words: Sequence[str]) -> None:
    """Say which of two values of an option counts: the last, as everywhere."""
    if isinstance(command, click.Group) or not command.allow_interspersed_args:
        return
    single = {
        spelling: option
        for option in command.params
        if isinstance(option, click.Option) and not (option.multiple or option.is_flag)
        for spelling in option.opts
    }
    given: dict[str, str] = {}
    for place, word in enumerate(words):
        if word == "--":
            return
        name, equals, value = word.partition("=")
        if name not in single:
            continue
        value = value if equals else "".join(words[place + 1 : place + 2])
        key = str(single[name].name)
        if given.setdefault(key, value) != value:
            say(f"warning: {name} is given twice: {value} counts, {given[key]} does not", err=True)
            given[key] = value


def _unknown_option(error: NoSuchOption, context: click.Context, usual: str) -> tuple[str, str]:
    asked = error.option_name.lstrip("-").replace("_", "-")
    for name, others in _SYNONYMS.items():
        ours = f"-{name}" if len(name) == 1 else f"--{name}"
        if asked in others and _has(context, ours):
            value = f" {asked}" if asked in ("fp16", "bf16", "fp8") else ""
            return f"No such option '{error.option_name}'.", (
                f"here it is {_USES.get(name, ours + value)}"
            )
    return error.format_message(), usual


def _missing(parameter: click.Parameter, context: click.Context) -> str:
    """What is missing: an option in the words of its help, an argument by example."""
    if not isinstance(parameter, click.Option) or not parameter.help:
        example = re.search(r"paceline .*", context.command.epilog or "")
        return f"as in: {example[0]}" if example else ""
    words = parameter.help.rstrip(".")
    return f"give {parameter.opts[0]}: {words[0].lower()}{words[1:]}"


def _written_out(message: str) -> str:
    """A number with a prefix or an exponent as what it may stand for."""
    found = _COUNT.search(message)
    if found is None or found[1].count(".") > 1:
        return "write it with digits alone"
    sizes = [float(found[1]) * scale for scale in _SCALES[found[2].lower()]]
    if any(size != int(size) for size in sizes):
        return "write it with digits alone"
    return f"write it out: {' or '.join(str(int(size)) for size in sizes)}"


def _of_group(word: str, context: click.Context, group: click.Group) -> str:
    """The commands of a group, or what to do with the file that was named instead of one."""
    names = group.list_commands(context)
    if Path(word).suffix:
        own = {name: group.get_command(context, name) for name in names}
        lines = [
            f"'{context.command_path} {name} {word}'"
            for name, command in own.items()
            if command is not None and any(isinstance(p, click.Argument) for p in command.params)
        ]
        return f"say what to do with it: {', '.join(lines)}"
    near = nearest(word, names)
    return f"near: {', '.join(near)}" if near else f"one of {', '.join(names)}"


def _meant(word: str, context: click.Context) -> str:
    """What a word that stands by itself was probably the value of."""
    name, equals, value = word.partition("=")
    if equals and _has(context, f"--{name}"):
        return f"did you mean --{name} {value}?"
    for option, knows in _KINDS:
        if _has(context, option) and knows(word, context):
            return f"did you mean {option} {word}?"
    if re.fullmatch(r"(days?|hours?|min|minutes?|[GMTk]?(B|bit|bps)(/s)?)", word):
        return "write a number and its unit as one word, as in 30d or 10gbit"
    said = context.get_parameter_source("model") is ParameterSource.COMMANDLINE
    if _has(context, "--model") and not said:
        return _near_model(word)
    return ""


def _near_model(word: str) -> str:
    from paceline.workload import zoo

    near = nearest(word, zoo.names())
    return f"did you mean --model {near[0]}? 'paceline models' lists all" if near else ""


def _has(context: click.Context, option: str) -> bool:
    return any(option in parameter.opts for parameter in context.command.params)


def _is_model(word: str, context: click.Context) -> bool:
    from paceline.workload import zoo

    if word.endswith((".onnx", "config.json")) or ".py" in word:
        return True
    return _is_found(zoo.family, word)


def _is_place(word: str, context: click.Context) -> bool:
    return re.fullmatch(r"\d+x\d+(,\d+x\d+)*", word) is not None


def _is_cluster(word: str, context: click.Context) -> bool:
    from paceline.hardware import catalogue

    return word.endswith(".toml") or _is_found(catalogue.cluster, word)


def _is_device(word: str, context: click.Context) -> bool:
    from paceline.hardware import catalogue

    return _is_found(catalogue.device, word)


def _is_link(word: str, context: click.Context) -> bool:
    from paceline.hardware import catalogue
    from paceline.units import parse_bandwidth

    return _is_found(catalogue.link, word) or _is_found(parse_bandwidth, word)


def _is_framework(word: str, context: click.Context) -> bool:
    from paceline.predictor.frameworks import framework

    return _is_found(framework, word)


def _is_precision(word: str, context: click.Context) -> bool:
    from paceline.workload.precision import precision

    return _is_found(precision, word)


def _is_study(word: str, context: click.Context) -> bool:
    from paceline.store import Store, default_store_path

    path = context.params.get("store_path") or default_store_path()
    with suppress(PacelineError, OSError), Store(path, create=False) as store:
        return word in store.studies()
    return False


def _is_found(look_up: Callable[[str], object], word: str) -> bool:
    try:
        look_up(word)
    except (PacelineError, OSError):
        return False
    return True


_KINDS: Iterable[tuple[str, Callable[[str, click.Context], bool]]] = (
    ("--study", _is_study),
    ("--model", _is_model),
    ("-j", _is_place),
    ("--cluster", _is_cluster),
    ("--device", _is_device),
    ("--precision", _is_precision),
    ("--frameworks", _is_framework),
    ("--framework", _is_framework),
    ("--link", _is_link),
)
"""Options in the order in which a word is tried as their value."""
