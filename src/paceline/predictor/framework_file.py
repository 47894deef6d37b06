"""Framework profiles from TOML, each mistake located by file and line."""

from collections.abc import Mapping
from typing import Any

from paceline import units
from paceline.errors import PacelineError
from paceline.located_toml import Table, parse_toml
from paceline.plan.synchronisation import Exchange, Policy, Synchronisation
from paceline.predictor.collectives.library import library
from paceline.predictor.compute import CONVOLUTIONS
from paceline.predictor.framework import Framework

_KEYS = (
    *("like", "title", "aliases", "synchronisation", "shard_stage", "library"),
    *("input_overlapped", "dispatch", "step_overhead", "message_overhead", "message_latency"),
    *(
        "tensor_overhead",
        "gradient_views",
        "pointwise_traffic",
        "convolution",
        "policy",
        "source",
        "priors",
    ),
)
_OPTIONAL = ("like", "aliases", "shard_stage", "gradient_views")
_SYNCHRONISATION_KEYS = ("policy", "first_bytes", "bucket_bytes", "piece_bytes", "exchange")


def read_frameworks(text: str, file: str, base_text: str = "") -> dict[str, Framework]:
    """The profiles of ``text``, each with what it takes from the one it is ``like``.

    That one may stand in the same text or in ``base_text``.
    """
    own = parse_toml(text, file).values
    document = {**parse_toml(base_text, file).values, **own}
    for name, values in own.items():
        if not isinstance(values, dict):
            Table(file, text, (), own).fail(
                name, f"'{name}' stands outside any profile", "write [PROFILE] above it"
            )
    return {name: _framework(Table(file, text, (name,), own[name]), document) for name in own}


def _framework(own: Table, document: Mapping[str, Any]) -> Framework:
    own.check_keys(_KEYS)
    name = own.name
    merged = Table(own.file, own.text, own.path, _inherited(own, name, document))
    for key in _KEYS:
        if key not in merged.values and key not in _OPTIONAL:
            own.fail(None, f"[{name}] has no {key}", "add it, or say which profile it is like")
    libraries = _libraries(merged)
    return Framework(
        name=name,
        title=merged.text_of("title"),
        synchronisation=_synchronisation(merged),
        shard_stage=_shard_stage(merged),
        accelerator_library=libraries[0],
        processor_library=libraries[1],
        input_overlapped=merged.flag("input_overlapped"),
        dispatch_seconds=_seconds(merged, "dispatch"),
        step_overhead_seconds=_seconds(merged, "step_overhead"),
        message_overhead_seconds=_seconds(merged, "message_overhead"),
        message_latency_seconds=_seconds(merged, "message_latency"),
        tensor_overhead_seconds=_seconds(merged, "tensor_overhead"),
        gradient_views=merged.flag("gradient_views"),
        pointwise_traffic=merged.parsed("pointwise_traffic", float) or 1.0,
        convolution=merged.text_of("convolution", allowed=CONVOLUTIONS),
        policy=merged.text_of("policy"),
        source=merged.text_of("source"),
        priors=tuple(merged.names("priors")),
        aliases=tuple(own.names("aliases")),
    )


def _inherited(own: Table, name: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Values of ``name`` with those of the profiles it is like, nearest first."""
    values: dict[str, Any] = {}
    seen: list[str] = []
    current: str | None = name
    while current is not None:
        if current not in document:
            own.fail("like", f"no profile '{current}' to be like", "name one of this file or ours")
        if current in seen:
            own.fail("like", f"'{current}' is like itself", "break the circle")
        seen.append(current)
        values = {**document[current], **values}
        current = document[current].get("like")
    return values


def _seconds(table: Table, key: str) -> float:
    return table.parsed(key, units.parse_seconds, may_be_zero=True) or 0.0


def _shard_stage(table: Table) -> int:
    stage = table.values.get("shard_stage", 0)
    if stage not in (0, 1, 2, 3):
        table.fail("shard_stage", f"shard_stage is {stage!r}", "one of 0, 1, 2, 3")
    return int(stage)


def _libraries(table: Table) -> tuple[str, str]:
    values = table.values["library"]
    sides = ("accelerator", "processor")
    if not isinstance(values, dict) or set(values) != set(sides):
        table.fail(
            "library",
            f"library is {values!r}",
            'write { accelerator = "nccl", processor = "gloo" }',
        )
    inner = Table(table.file, table.text, (*table.path, "library"), values)
    names = [inner.text_of(side) for side in sides]
    for side, name in zip(sides, names, strict=True):
        try:
            library(name)
        except PacelineError as error:
            inner.fail(side, error.message, error.hint)
    return names[0], names[1]


def _synchronisation(table: Table) -> Synchronisation:
    values = table.values["synchronisation"]
    if not isinstance(values, dict):
        table.fail("synchronisation", f"synchronisation is {values!r}", 'write { policy = "..." }')
    inner = Table(table.file, table.text, (*table.path, "synchronisation"), values)
    inner.check_keys(_SYNCHRONISATION_KEYS)
    usual = Synchronisation()
    return Synchronisation(
        policy=Policy(inner.text_of("policy", allowed=tuple(Policy))),
        first_bytes=inner.parsed("first_bytes", units.parse_bytes) or usual.first_bytes,
        bucket_bytes=inner.parsed("bucket_bytes", units.parse_bytes) or usual.bucket_bytes,
        piece_bytes=inner.parsed("piece_bytes", units.parse_bytes) or usual.piece_bytes,
        exchange=Exchange(inner.text_of("exchange", usual.exchange, tuple(Exchange))),
    )
