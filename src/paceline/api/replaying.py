"""A layer-wise trace among other numbers of nodes, on another network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

from paceline.api.requests import JobWords, synchronisation_of, trace_of
from paceline.errors import InputError
from paceline.hardware import Device, Link, catalogue
from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.frameworks import framework
from paceline.predictor.predict import DEFAULT_FRAMEWORK
from paceline.predictor.replay import Replayed, replay_on
from paceline.step.layer_trace import LayerTrace


@dataclass(frozen=True)
class Replay:
    """A trace replayed on a network, once for each number of workers."""

    trace: LayerTrace
    link: Link
    synchronisation: Synchronisation
    framework: str
    replayed: tuple[Replayed, ...]


def replay_trace(workers: Sequence[int], **words: Unpack[JobWords]) -> Replay:
    """Replay ``trace`` among ``workers`` joined by ``link``.

    Compute times stay as traced; only communication is predicted. ``framework``, ``overlap`` and
    ``bucket`` say how gradients travel.
    """
    trace, link = trace_of(words.get("trace")), words.get("link")
    if not workers or not link or trace is None:
        raise InputError(
            "a trace needs nodes and a network to be replayed on",
            "write --nodes 2,4,8 --link eth_10g, or name a --cluster",
        )
    network = catalogue.link(link)
    profile = framework(words.get("framework") or DEFAULT_FRAMEWORK)
    library = profile.library(Device("the traced device", "", "gpu", {}))
    chosen = synchronisation_of(words) or profile.synchronisation or Synchronisation()
    replayed = replay_on(trace, workers, network, chosen, library)
    return Replay(trace, network, chosen, profile.name, tuple(replayed))
