"""Framework profiles: overlap policy, fusion, input pipeline, overheads, each with its source."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from paceline import units
from paceline.errors import InputError
from paceline.hardware import Device
from paceline.hardware.toml_lines import line_of, parse_toml
from paceline.naming import unknown_name
from paceline.plan.synchronisation import Exchange, Policy, Synchronisation
from paceline.predict.collectives.library import Library, library


@dataclass(frozen=True)
class Framework:
    """How a framework spends a step besides the arithmetic of its layers.

    ``dispatch_seconds`` is host time to issue one operation, ``step_overhead_seconds`` time per
    step that nothing hides, ``message_overhead_seconds`` what each message takes from the
    device that computes, ``message_latency_seconds`` the delay before each message starts,
    ``tensor_overhead_seconds`` what each gradient tensor takes from it (hook, copy into a
    buffer, its share of buffers that are kept equal) when there is more than one replica.
    ``pointwise_traffic`` is the fraction of pointwise memory traffic left after fusion.
    ``policy`` describes the behaviour in words, ``priors`` names the fields that are
    judgements rather than facts of the source.
    """

    name: str
    title: str
    synchronisation: Synchronisation
    shard_stage: int
    accelerator_library: str
    processor_library: str
    input_overlapped: bool
    dispatch_seconds: float
    step_overhead_seconds: float
    message_overhead_seconds: float
    message_latency_seconds: float
    tensor_overhead_seconds: float
    pointwise_traffic: float
    convolution: str
    policy: str
    source: str
    priors: tuple[str, ...]
    aliases: tuple[str, ...] = ()

    def overhead_seconds(self, tensors: int, replicas: int) -> float:
        """Time per step that nothing hides, for a network of so many gradient tensors."""
        if replicas == 1:
            return self.step_overhead_seconds
        return self.step_overhead_seconds + tensors * self.tensor_overhead_seconds

    def library(self, device: Device) -> Library:
        """The communication library it uses between devices of this kind."""
        return library(self.processor_library if device.is_processor else self.accelerator_library)


def framework(name: str | Framework) -> Framework:
    """The profile of that name or of another name of it (``pytorch_ddp``, ``mxnet_kvstore``)."""
    if isinstance(name, Framework):
        return name
    known = _spellings().get(_fold(name))
    if known is None:
        raise unknown_name(
            "framework", name, _spellings(), f"one of {', '.join(framework_names())}"
        )
    return _profiles()[known]


def framework_names() -> list[str]:
    """Every profile."""
    return list(_profiles())


def frameworks_from_toml(text: str, file: str) -> dict[str, Framework]:
    """The profiles of a TOML text, each with what it takes from the one it is ``like``."""
    document = parse_toml(text, file)
    return {name: _framework(name, document, text, file) for name in document}


def _fold(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


@lru_cache(maxsize=1)
def _profiles() -> dict[str, Framework]:
    path = resources.files("paceline") / "data" / "frameworks" / "profiles.toml"
    return frameworks_from_toml(path.read_text(encoding="utf-8"), "profiles.toml")


@lru_cache(maxsize=1)
def _spellings() -> dict[str, str]:
    table: dict[str, str] = {}
    for profile in _profiles().values():
        table |= {_fold(alias): profile.name for alias in profile.aliases}
    return table | {_fold(name): name for name in _profiles()}


def _framework(name: str, document: Mapping[str, Any], text: str, file: str) -> Framework:
    values = _inherited(name, document, text, file)
    try:
        return Framework(
            name=name,
            title=values["title"],
            synchronisation=_synchronisation(values["synchronisation"]),
            shard_stage=values.get("shard_stage", 0),
            accelerator_library=values["library"]["accelerator"],
            processor_library=values["library"]["processor"],
            input_overlapped=values["input_overlapped"],
            dispatch_seconds=units.parse_seconds(values["dispatch"]),
            step_overhead_seconds=units.parse_seconds(values["step_overhead"]),
            message_overhead_seconds=units.parse_seconds(values["message_overhead"]),
            message_latency_seconds=units.parse_seconds(values["message_latency"]),
            tensor_overhead_seconds=units.parse_seconds(values["tensor_overhead"]),
            pointwise_traffic=values["pointwise_traffic"],
            convolution=values["convolution"],
            policy=values["policy"],
            source=values["source"],
            priors=tuple(values["priors"]),
            aliases=tuple(document[name].get("aliases", ())),
        )
    except KeyError as error:
        line = line_of(text, (name,))
        raise InputError(
            f"{file}, line {line}: [{name}] has no {error.args[0]}",
            "add it, or say which profile it is like",
        ) from None


def _inherited(name: str, document: Mapping[str, Any], text: str, file: str) -> dict[str, Any]:
    own = document[name]
    base = own.get("like")
    if base is None:
        return dict(own)
    if base not in document or document[base].get("like") == name:
        line = line_of(text, (name,), "like")
        raise InputError(f"{file}, line {line}: no profile '{base}' to be like", "name one above")
    return {**_inherited(base, document, text, file), **own}


def _synchronisation(values: Mapping[str, Any]) -> Synchronisation:
    usual = Synchronisation()
    return Synchronisation(
        policy=Policy(values["policy"]),
        first_bytes=units.parse_bytes(values.get("first_bytes", usual.first_bytes)),
        bucket_bytes=units.parse_bytes(values.get("bucket_bytes", usual.bucket_bytes)),
        piece_bytes=units.parse_bytes(values.get("piece_bytes", usual.piece_bytes)),
        exchange=Exchange(values.get("exchange", usual.exchange)),
    )
