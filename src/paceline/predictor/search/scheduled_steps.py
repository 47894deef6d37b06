"""Plans whose messages depend on times: the scheduler's own steps, one plan after the other."""

from dataclasses import replace

import numpy as np

from paceline.plan.synchronisation import Exchange, Policy, Synchronisation
from paceline.predictor.replica_step import replica_step
from paceline.predictor.search.layer_table import Array
from paceline.predictor.search.setting import Setting
from paceline.predictor.sharded_step import sharded_update_step

_BY_TIMES = (Policy.FUSED, Policy.MERGED, Policy.SPLIT, Policy.PRIORITY)


def depends_on_times(synchronisation: Synchronisation) -> bool:
    """Whether order or sizes of messages without a pipeline are not the same for all plans."""
    by_servers = synchronisation.exchange is Exchange.PARAMETER_SERVER
    return by_servers or synchronisation.policy in _BY_TIMES


def scheduled_seconds(setting: Setting, overhead: Array, update: Array) -> Array:
    """Seconds per step, input aside, of plans without a pipeline, for shard stages 0 to 2."""
    shape = (setting.degrees.size, setting.micro_batch.size, 3, 4)
    result = np.zeros(shape)
    wanted = (setting.pp == 1) & (setting.dp > 1) & (setting.zero < 3) & setting.valid
    everything = range(len(setting.table.parts))
    weights = setting.table.weight_bytes(everything)
    factors = np.broadcast_to(setting.slowest_factor, shape)
    overheads, updates = np.broadcast_to(overhead, shape), np.broadcast_to(update, shape)
    bare = replace(setting.case.costs, input_seconds=0.0, copy_seconds=0.0)
    for place in map(tuple, np.argwhere(np.broadcast_to(wanted, shape))):
        row, micro, mode, zero = (int(number) for number in place)
        exchange = setting.exchange_among(float(setting.degrees.dp[row]))
        layers = setting.table.layer_times(everything, micro, mode, float(factors[place]))
        costs = replace(
            bare,
            overhead_seconds=float(overheads[place]),
            update_seconds=float(updates[place]),
        )
        count = int(setting.micro_batches[row, micro, 0, 0])
        if zero == 0:
            step = replica_step(layers, exchange, costs, micro_batches=count)
        else:
            step = sharded_update_step(
                layers, exchange, costs, weights, scatters_each=zero == 2, micro_batches=count
            )
        result[place] = step.seconds
    return result
