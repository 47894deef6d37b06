"""Fully sharded data parallelism: units gathered one ahead, for many plans at once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.search.layer_table import Array, Sums
from paceline.predictor.search.setting import Setting


def fully_sharded_seconds(setting: Setting, overhead: Array) -> Array:
    """Seconds of all micro-batches without a pipeline, weights gathered unit by unit.

    The same order of gathers, passes and scatters as in `sharded_step.fully_sharded_step`, one
    clock for the device and one for the network. ``overhead`` seconds come first.
    """
    chosen = (setting.degrees.pp == 1) & (setting.degrees.dp > 1)
    result = np.zeros((setting.degrees.size, setting.micro_batch.size, 3, 1))
    if chosen.any():
        units = [setting.table.sums(range(part.first, part.last)) for part in setting.parts]
        one = _Clocks(setting, chosen, np.zeros(1), np.zeros(1)).run(units)
        earlier = setting.micro_batches[chosen] - 1.0
        device = overhead[chosen] + earlier * one
        # Gathers wait for earlier micro-batches, but not for the framework.
        network = np.where(earlier > 0, device, 0.0)
        result[chosen] = _Clocks(setting, chosen, device, network).run(units)
    return result


class _Clocks:
    """Time of the device and of the network: arrays over degrees, micro-batch, recomputation."""

    def __init__(
        self, setting: Setting, chosen: NDArray[np.bool_], device: Array, network: Array
    ) -> None:
        self.setting = setting
        self.exchange = setting.exchange_among(setting.dp[chosen])
        self.factor = np.broadcast_to(setting.slowest_factor, setting.dp.shape)[chosen]
        costs = setting.case.costs
        self.interference = costs.interference
        self.launch = costs.message_overhead_seconds * self.exchange.share
        shape = (int(chosen.sum()), setting.micro_batch.size, 3, 1)
        self.device = device + np.zeros(shape)
        self.network = network + np.zeros(shape)

    def run(self, units: Sequence[Sums]) -> Array:
        """Forward through all units, then backward."""
        self._in_order(units, backward=False)
        self._in_order(units[::-1], backward=True)
        return np.maximum(self.device, self.network)

    def _in_order(self, units: Sequence[Sums], backward: bool) -> None:
        begin = np.zeros_like(self.device)
        done: list[Array] = []
        arrived: list[Array] = []
        for position, unit in enumerate(units):
            while len(arrived) < min(position + 2, len(units)):
                number = len(arrived)
                after = done[number - 2] if number >= 2 else begin
                gather = self.exchange.gather(units[number].weight_bytes)
                self.network = np.maximum(self.network, after) + gather
                arrived.append(self.network)
            self.device = np.maximum(self.device, arrived[position])
            self._compute(unit, backward)
            done.append(self.device)
            if backward and unit.gradient_bytes > 0:
                scatter = self.exchange.scatter(unit.gradient_bytes)
                self.network = np.maximum(self.network, self.device) + scatter

    def _compute(self, unit: Sums, backward: bool) -> None:
        place = self.setting.by_micro_batch
        if backward:
            work = self.factor * place(unit.backward) + self.launch
            exchange = place(unit.backward_exchange)
        else:
            work = self.factor * place(unit.forward)
            exchange = place(unit.forward_exchange)
        busy = np.maximum(self.network - self.device, 0.0)
        slowed = np.minimum(work, busy / (1.0 + self.interference))
        self.device = self.device + work + self.interference * slowed + exchange
