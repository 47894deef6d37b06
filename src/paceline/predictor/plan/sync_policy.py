"""When and in which messages data-parallel replicas exchange gradients."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from paceline.errors import InputError
from paceline.file_keys import NOT_IN_FILE, quantity
from paceline.naming import look_up
from paceline.units import parse_bytes

MIB = 2.0**20


class Policy(StrEnum):
    """How gradients are grouped into messages, and what these overlap."""

    NONE = "none"
    """One message per tensor, all after backward: naive synchronous SGD."""
    PER_TENSOR = "per_tensor"
    """One message per tensor as soon as its gradient is ready (wait-free backward, WFBP)."""
    BUCKETED = "bucketed"
    """Buckets of bounded size in reverse order of use, as PyTorch DDP fills them."""
    FUSED = "fused"
    """All ready tensors when the link becomes idle, up to a limit (Horovod tensor fusion)."""
    MERGED = "merged"
    """Neighbouring tensors merged to minimise the end of the last message (MG-WFBP)."""
    ONE_MESSAGE = "one_message"
    """Everything in one buffer after backward."""
    SPLIT = "split"
    """Reduce-scatter during backward, all-gather during the next forward (DeAR, ZeRO)."""
    PRIORITY = "priority"
    """Pieces of tensors, in the order of use by the next forward (ByteScheduler)."""


class Exchange(StrEnum):
    """How messages are exchanged."""

    ALL_REDUCE = "all_reduce"
    PARAMETER_SERVER = "parameter_server"


@dataclass(frozen=True)
class Synchronisation:
    """A policy with its sizes in bytes, and the exchange of its messages.

    ``first_bytes`` and ``bucket_bytes`` close the first and the later buckets of ``bucketed``
    and ``split``; ``bucket_bytes`` limits a message of ``fused``, ``piece_bytes`` a piece of
    ``priority``. ``every_steps`` above 1 is local SGD: replicas exchange every n-th step, so each
    message costs 1/n of its time on average. ``asynchronous`` replicas never wait for each
    other, only for their own push and pull. ``servers`` is the number of parameter servers
    (None: one per worker node); they run on separate machines unless ``servers_on_workers``.
    """

    policy: Policy = Policy.BUCKETED
    first_bytes: Annotated[float, quantity(parse_bytes)] = 1 * MIB
    bucket_bytes: Annotated[float, quantity(parse_bytes)] = 25 * MIB
    piece_bytes: Annotated[float, quantity(parse_bytes)] = 4 * MIB
    exchange: Exchange = Exchange.ALL_REDUCE
    servers: Annotated[int | None, NOT_IN_FILE] = None
    servers_on_workers: Annotated[bool, NOT_IN_FILE] = False
    every_steps: Annotated[int, NOT_IN_FILE] = 1
    asynchronous: bool = False

    def __post_init__(self) -> None:
        for name in ("first_bytes", "bucket_bytes", "piece_bytes"):
            if not getattr(self, name) > 0:
                raise InputError(
                    f"{name} must be positive (got {getattr(self, name)})",
                    "give a size such as 25MiB, or use 'per_tensor' for one message per tensor",
                )
        if self.every_steps < 1:
            raise InputError(
                f"every_steps must be at least 1 (got {self.every_steps})",
                "give a positive integer",
            )
        if self.servers is not None and self.servers < 1:
            raise InputError(
                f"the number of parameter servers must be at least 1 (got {self.servers})",
                "give a positive integer",
            )

    @property
    def groups_by_times(self) -> bool:
        """Whether the grouping depends on the times at which gradients are ready."""
        return self.policy in (Policy.FUSED, Policy.MERGED)

    @property
    def leaves_after_backward(self) -> bool:
        """Whether messages are sent after backward."""
        return self.policy in (Policy.NONE, Policy.ONE_MESSAGE)

    def with_bucket(self, bucket_bytes: float) -> "Synchronisation":
        """The same policy with buckets or pieces of ``bucket_bytes``.

        The first bucket has the same size: DDP uses a smaller one only by default.
        """
        return replace(
            self,
            bucket_bytes=bucket_bytes,
            first_bytes=bucket_bytes,
            piece_bytes=bucket_bytes,
        )


SYNCHRONISATIONS = {
    **{str(policy): Synchronisation(policy) for policy in Policy},
    "parameter_server": Synchronisation(Policy.PER_TENSOR, exchange=Exchange.PARAMETER_SERVER),
}
"""Synchronisations by the name that ``--overlap`` takes."""


def synchronisation(name: str) -> Synchronisation:
    """The synchronisation called ``name``, with its default sizes."""
    return look_up(
        "synchronisation", name, SYNCHRONISATIONS, f"one of {', '.join(SYNCHRONISATIONS)}"
    )
