"""When and in which messages data-parallel replicas exchange gradients."""

from dataclasses import dataclass, replace
from enum import StrEnum

from paceline.errors import InputError
from paceline.naming import look_up

MIB = 2.0**20


class Policy(StrEnum):
    """How gradients become messages, and what those messages may overlap with."""

    NONE = "none"
    """One message per tensor, all after backward: naive synchronous SGD."""
    PER_TENSOR = "per_tensor"
    """One message per tensor as soon as its gradient is ready (wait-free backward, WFBP)."""
    BUCKETED = "bucketed"
    """Buckets of bounded size in reverse order of use, as PyTorch DDP fills them."""
    FUSED = "fused"
    """Whatever is ready when the link gets free, up to a limit, as Horovod fuses."""
    MERGED = "merged"
    """Neighbouring tensors merged so that the last message ends earliest (MG-WFBP)."""
    ONE_MESSAGE = "one_message"
    """Everything in one buffer after backward."""
    SPLIT = "split"
    """Reduce-scatter under backward, all-gather under the next forward (DeAR, ZeRO)."""
    PRIORITY = "priority"
    """Pieces of tensors, those used first by the next forward sent first (ByteScheduler)."""


class Exchange(StrEnum):
    """Through what a message travels."""

    ALL_REDUCE = "all_reduce"
    PARAMETER_SERVER = "parameter_server"


@dataclass(frozen=True)
class Synchronisation:
    """A policy with its sizes in bytes, and the exchange its messages use.

    ``first_bytes`` and ``bucket_bytes`` close the first and the later buckets of ``bucketed``
    and ``split``; ``bucket_bytes`` limits a message of ``fused``, ``piece_bytes`` a piece of
    ``priority``. ``every_steps`` above 1 is local SGD: replicas exchange only then, so each
    message costs that fraction of its time. ``asynchronous`` replicas never wait for each
    other, only for their own push and pull. ``servers`` is the number of parameter servers
    (None: one per worker node), which have machines of their own unless ``servers_on_workers``.
    """

    policy: Policy = Policy.BUCKETED
    first_bytes: float = 1 * MIB
    bucket_bytes: float = 25 * MIB
    piece_bytes: float = 4 * MIB
    exchange: Exchange = Exchange.ALL_REDUCE
    servers: int | None = None
    servers_on_workers: bool = False
    every_steps: int = 1
    asynchronous: bool = False

    def __post_init__(self) -> None:
        for name in ("first_bytes", "bucket_bytes", "piece_bytes"):
            if not getattr(self, name) > 0:
                raise InputError(
                    f"{name} of a synchronisation must be positive, not {getattr(self, name)}",
                    "give a size such as 25MiB; 'per_tensor' sends every tensor alone",
                )
        if self.every_steps < 1:
            raise InputError(
                f"replicas cannot synchronise every {self.every_steps} steps", "give at least 1"
            )
        if self.servers is not None and self.servers < 1:
            raise InputError(
                f"{self.servers} parameter servers cannot serve anyone", "give at least 1"
            )

    @property
    def groups_by_times(self) -> bool:
        """Whether which tensors travel together depends on when they get ready."""
        return self.policy in (Policy.FUSED, Policy.MERGED)

    @property
    def leaves_after_backward(self) -> bool:
        """Whether messages wait for the end of backward."""
        return self.policy in (Policy.NONE, Policy.ONE_MESSAGE)

    def with_bucket(self, bucket_bytes: float) -> "Synchronisation":
        """The same policy with ``bucket_bytes`` as its size of bucket or piece.

        The first bucket is as large: DDP has a smaller one only where nobody gives a size.
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
    """The synchronisation called ``name``, with its usual sizes."""
    return look_up(
        "synchronisation", name, SYNCHRONISATIONS, f"one of {', '.join(SYNCHRONISATIONS)}"
    )
