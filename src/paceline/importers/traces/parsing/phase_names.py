"""Training phase of an operation or region, by its name."""

import re

from paceline.step import Phase

_RULES: tuple[tuple[Phase, re.Pattern[str]], ...] = (
    (
        Phase.COMMUNICATE,
        re.compile(
            r"all[_-]?reduce|all[_-]?gather|reduce[_-]?scatter|all[_-]?to[_-]?all|broadcast|bcast"
            r"|nccl|gloo|^MPI_|kvstore|horovod|gradient aggregation|(?:^|[_-])(?:send|recv)\b",
            re.IGNORECASE,
        ),
    ),
    (
        Phase.UPDATE,
        re.compile(r"_update\b|update_dw|optimi[sz]er|weight update|^update|apply_grad", re.I),
    ),
    (Phase.BACKWARD, re.compile(r"backward|\bbwd|^bp-|gradient|_grad\b", re.I)),
    (Phase.COPY, re.compile(r"copy(?:cpu|gpu)2|memcpy|^copy", re.I)),
    (
        Phase.INPUT,
        re.compile(
            r"get minibatch|prefetch|dataloader|next_batch|load_data|^input|data_load", re.I
        ),
    ),
    (Phase.FORWARD, re.compile(r"forward|\bfwd|^fp-", re.I)),
)

STEP_NAME = re.compile(
    r"^_?(?:ProfilerStep#\d+|Minibatch Iteration|(?:train(?:ing)?[_ ])?(?:step|iteration)\b.*)$",
    re.I,
)
"""Names of regions that span one whole step."""


def phase_of(name: str) -> Phase | None:
    for phase, pattern in _RULES:
        if pattern.search(name):
            return phase
    return None


def lane_of(phase: Phase) -> str:
    """The resource that a phase occupies."""
    return {
        Phase.COMMUNICATE: "network",
        Phase.INPUT: "input",
        Phase.COPY: "copy",
    }.get(phase, "compute")
