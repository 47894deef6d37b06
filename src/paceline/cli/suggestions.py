"""Hints for usage errors: suggest the option or value that was probably meant."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import click
from click.core import ParameterSource
from click.exceptions import NoSuchOption

from paceline.cli.echo import echo
from paceline.errors import InputError, PacelineError
from paceline.naming import nearest
from paceline.units import integer_hint

_SYNONYMS = {
    "batch": ("batch-size", "bs", "b", "local-batch", "per-device-batch", "batchsize"),
    "global-batch": ("global-batch-size", "gbs", "total-batch"),
    "micro-batch": ("micro-batch-size", "mbs", "microbatch"),
    "seq": ("sequence", "seq-len", "seq-length", "sequence-length", "context", "tokens-per-sample"),
    "tp": ("tensor-parallel", "tensor-parallel-size", "tensor-model-parallel-size"),
    "pp": ("pipeline-parallel", "pipeline-parallel-size", "pipeline-model-parallel-size"),
    "cp": ("context-parallel", "context-parallel-size"),
    "ep": ("expert-parallel", "expert-parallel-size", "expert-model-parallel-size"),
    "zero": ("zero-stage", "sharding", "fsdp"),
    "precision": ("dtype", "fp16", "bf16", "fp8", "amp"),
    "link": ("bandwidth", "network", "interconnect"),
    "recompute": ("activation-checkpointing", "checkpointing", "ac"),
    "optimizer": ("optimiser",),
    "optimizer-state": ("optimiser-state",),
    "nics": ("cards",),
    "cp-impl": ("cp-form",),
    "no-sequence-parallel": ("whole-sequences",),
    "no-fused-attention": ("unfused-attention",),
    "allreduce-curve": ("curve",),
    "j": ("gpus", "num-gpus", "ngpus", "devices", "num-devices", "world-size", "nproc", "np"),
}
"""Names of our options in other programs."""
_USES = {"j": "-j NODESxGPUS, such as -j 2x8"}


def explain_usage_error(error: click.ClickException) -> tuple[str, str]:
    """Message and hint of a usage error."""
    message, context = error.format_message(), getattr(error, "ctx", None)
    if context is None:
        return message, ""
    usual = f"run '{context.command_path} --help' for the options"
    if isinstance(error, NoSuchOption):
        return _unknown_option(error, context, usual)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return message, _missing(error.param, context) or usual
    extra = re.match(r"Got unexpected extra arguments? \((.*)\)", message)
    if extra is not None:
        return message, _suggest_option(extra[1].split()[0], context) or usual
    if "is not a valid integer" in message:
        quoted = re.search(r"'([^']*)' is not a valid", message)
        hint = integer_hint(quoted[1] if quoted else "")
        return message.replace("a valid integer", "an integer"), hint
    unknown = re.match(r"No such command '(.*)'", message)
    if unknown is not None and isinstance(context.command, click.Group):
        return message, _suggest_subcommand(unknown[1], context, context.command)
    return message, usual


def refuse_empty(command: click.Command, arguments: Sequence[str]) -> None:
    """Raise if an argument is empty, as from an unset shell variable."""
    if not (isinstance(command, click.Group) or command.allow_interspersed_args):
        return  # arguments of the user's own command
    for index, argument in enumerate(arguments):
        if argument == "--":
            return
        if not argument or re.fullmatch(r"--[a-z-]+=", argument):
            option = argument or next(iter(arguments[index - 1 : index]), "")
            named = f" ({option})" if option.startswith("-") else ""
            raise InputError(f"an argument is empty{named}", "omit it, or give a value")


def warn_of_repeated(command: click.Command, arguments: Sequence[str]) -> None:
    """Warn of an option given twice: click uses the last value."""
    if isinstance(command, click.Group) or not command.allow_interspersed_args:
        return
    single = {
        spelling: option
        for option in command.params
        if isinstance(option, click.Option) and not (option.multiple or option.is_flag)
        for spelling in option.opts
    }
    given: dict[str, str] = {}
    for index, argument in enumerate(arguments):
        if argument == "--":
            return
        name, equals, value = argument.partition("=")
        if name not in single:
            continue
        value = value if equals else "".join(arguments[index + 1 : index + 2])
        key = str(single[name].name)
        if given.setdefault(key, value) != value:
            echo(f"warning: {name} given twice: using {value}, not {given[key]}", err=True)
            given[key] = value


def _unknown_option(error: NoSuchOption, context: click.Context, usual: str) -> tuple[str, str]:
    unknown = error.option_name.lstrip("-").replace("_", "-")
    if context.command_path.endswith(" compare") and unknown.startswith("framework"):
        return error.format_message(), "use 'paceline measure --framework NAME,NAME'"
    for name, others in _SYNONYMS.items():
        ours = f"-{name}" if len(name) == 1 else f"--{name}"
        if unknown in others and _has(context, ours):
            value = f" {unknown}" if unknown in ("fp16", "bf16", "fp8") else ""
            return f"No such option '{error.option_name}'.", (
                f"use {_USES.get(name, ours + value)}"
            )
    return error.format_message(), usual


def _missing(parameter: click.Parameter, context: click.Context) -> str:
    """Hint for a missing parameter: the help of an option, an example of an argument."""
    if not isinstance(parameter, click.Option) or not parameter.help:
        example = re.search(r"paceline .*", context.command.epilog or "")
        return f"example: {example[0]}" if example else ""
    return f"give {parameter.opts[0]}: {parameter.help.rstrip('.')}"


def _suggest_subcommand(word: str, context: click.Context, group: click.Group) -> str:
    """Hint for an unknown subcommand: similar names, or commands that take the file given."""
    names = group.list_commands(context)
    if Path(word).suffix:
        own = {name: group.get_command(context, name) for name in names}
        lines = [
            f"'{context.command_path} {name} {word}'"
            for name, command in own.items()
            if command is not None and any(p.name == "file" for p in command.params)
        ]
        return f"give a command: {', '.join(lines)}"
    near = nearest(word, names)
    return f"did you mean {', '.join(near)}?" if near else f"choose one of {', '.join(names)}"


def _suggest_option(word: str, context: click.Context) -> str:
    """Hint for an extra argument: the option whose value it probably is."""
    name, equals, value = word.partition("=")
    if equals and _has(context, f"--{name}"):
        return f"did you mean --{name} {value}?"
    for option, knows in _KINDS:
        if _has(context, option) and knows(word, context):
            return f"did you mean {option} {word}?"
    if re.fullmatch(r"(days?|hours?|min|minutes?|[GMTk]?(B|bit|bps)(/s)?)", word):
        return "write a number and its unit without a space, such as 30d or 10gbit"
    given = context.get_parameter_source("model") is ParameterSource.COMMANDLINE
    if _has(context, "--model") and not given:
        return _near_model(word)
    return ""


def _near_model(word: str) -> str:
    from paceline.workload import zoo

    near = nearest(word, zoo.names())
    return (
        f"did you mean --model {near[0]}? run 'paceline catalog models' for a list" if near else ""
    )


def _has(context: click.Context, option: str) -> bool:
    return any(
        option in (*parameter.opts, *parameter.secondary_opts)
        for parameter in context.command.params
    )


def _is_model(word: str, context: click.Context) -> bool:
    from paceline.workload import zoo

    if word.endswith((".onnx", "config.json")) or ".py" in word:
        return True
    return _is_found(zoo.family, word)


def _is_topology(word: str, context: click.Context) -> bool:
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
    from paceline.predictor.framework_profiles import framework

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
    ("-j", _is_topology),
    ("--cluster", _is_cluster),
    ("--device", _is_device),
    ("--precision", _is_precision),
    ("--frameworks", _is_framework),
    ("--framework", _is_framework),
    ("--link", _is_link),
)
"""Options, in the order in which an extra argument is tried as their value."""
