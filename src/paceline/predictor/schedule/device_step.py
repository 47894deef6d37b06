"""The step of one device without a pipeline, described once for tasks and for times alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.predictor.schedule.ddp_step import schedule_ddp
from paceline.predictor.schedule.fsdp_step import schedule_fsdp, schedule_zero12
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime, Seconds, StepCosts
from paceline.predictor.schedule.task_schedule import NumberSchedule, ScheduleBackend, TaskSchedule
from paceline.step import Step


@dataclass(frozen=True, eq=False)
class DeviceStep:
    """Layers, gradient messages and other costs of a step of one representative device.

    Seconds are numbers, or arrays over configurations. ``exchange`` is None for a single replica.
    ``zero`` is the stage of sharded data parallelism, ``weight_bytes`` the weights of each layer in
    an all-gather, ``units`` the runs of layers that stage 3 gathers together.
    """

    layers: Sequence[LayerTime]
    exchange: GradientExchange | None
    costs: StepCosts
    zero: int = 0
    weight_bytes: Sequence[float] = ()
    units: Sequence[Sequence[int]] = ()
    micro_batches: Seconds = 1

    def schedule_on(self, builder: ScheduleBackend) -> None:
        """Schedule the step on a backend."""
        count = self.micro_batches
        if self.exchange is None or self.zero == 0:
            schedule_ddp(builder, self.layers, self.exchange, self.costs, micro_batches=count)
            return
        shared = (builder, self.layers, self.exchange, self.costs, self.weight_bytes)
        if self.zero == 3:
            schedule_fsdp(*shared, self.units, micro_batches=count)
        else:
            schedule_zero12(*shared, scatters_each=self.zero == 2, micro_batches=count)

    def tasks(self, label: str = "") -> Step:
        """The step as a list of tasks."""
        builder = TaskSchedule(self.costs.interference)
        self.schedule_on(builder)
        return builder.build(label)

    def seconds(self) -> float:
        """Duration of the step, if all times are numbers."""
        clocks = NumberSchedule(self.costs.interference)
        self.schedule_on(clocks)
        return clocks.seconds

    def array_seconds(self) -> Seconds:
        """Durations of the step over all configurations."""
        from paceline.predictor.schedule.array_schedule import ArraySchedule

        clocks = ArraySchedule(self.costs.interference)
        self.schedule_on(clocks)
        return clocks.seconds
