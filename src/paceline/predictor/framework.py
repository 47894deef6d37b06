"""Framework: how a training framework spends a step besides the arithmetic of its layers."""

from dataclasses import dataclass

from paceline.hardware import Device
from paceline.plan.synchronisation import Policy, Synchronisation
from paceline.predictor.collectives.library import Library, library


@dataclass(frozen=True)
class Framework:
    """How a framework spends a step besides the arithmetic of its layers.

    ``dispatch_seconds`` is host time to issue one operation, ``step_overhead_seconds`` time per
    step that nothing hides, ``message_overhead_seconds`` what each message takes from the
    device that computes, ``message_latency_seconds`` the delay before each message starts,
    ``tensor_overhead_seconds`` what each gradient tensor takes from it (hook, copy into a
    buffer, its share of buffers that are kept equal) when there is more than one replica.
    ``gradient_views``: gradients live in the buffers that are sent, so that no copy of them is.
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
    gradient_views: bool
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

    def copies_gradients(self, synchronisation: Synchronisation) -> bool:
        """Whether flat buffers keep a second copy of all gradients."""
        flat = synchronisation.policy in (Policy.BUCKETED, Policy.ONE_MESSAGE)
        return flat and not self.gradient_views

    def library(self, device: Device) -> Library:
        """The communication library it uses between devices of this kind."""
        return library(self.processor_library if device.is_processor else self.accelerator_library)
