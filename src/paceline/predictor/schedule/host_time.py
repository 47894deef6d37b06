"""Steps bound by the host: kernels of a block are issued more slowly than devices run them."""

from dataclasses import replace

from paceline.constants import number
from paceline.predictor.partition.partition import Partition
from paceline.predictor.schedule.device_times import DeviceTimes
from paceline.workload.blocks import blocks


def block_host_seconds(parts: Partition) -> float:
    """Host time of one block and micro-batch, forward and backward; 0 if unknown.

    Collectives of a block are issued for every tensor-parallel rank; in pipelines over several
    nodes that takes several times longer (measured with nanotron; data/constants/overheads.toml).
    """
    name, plan = parts.framework.host_constants, parts.plan
    if not name:
        return 0.0

    def constant(key: str) -> float:
        return number(f"overheads.host.{name}.{key}")

    if plan.tp == 1 or plan.pp == 1 or parts.cluster.nodes == 1:
        return max(constant("block"), plan.tp * constant("block_rank"))
    ranks = plan.tp * (constant("pipelined_rank") + plan.tp * constant("pipelined_pair"))
    return constant("pipelined") + ranks


def at_host_rate(times: DeviceTimes, parts: Partition) -> DeviceTimes:
    """The times, longer where the host takes longer than the device for a block.

    The host runs ahead of the device, so only their sums over a block compare.
    """
    least = block_host_seconds(parts)
    if least == 0.0:
        return times
    count = len(blocks(parts.workload.graph))
    busy = parts.total(times.whole_forward + times.whole_backward) / count
    computing = parts.total(times.forward + times.backward) / count
    if busy >= least or computing <= 0:
        return times
    factor = 1.0 + (least - busy) / computing
    return replace(times, forward=factor * times.forward, backward=factor * times.backward)
