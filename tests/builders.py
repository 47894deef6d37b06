"""Ready-made values for tests: a launch and how it ended, the launches of a study, a machine."""

from paceline.hardware.machine_profile import CollectivePoint, Colocation, MachineProfile
from paceline.predictor.kernels.efficiency import load_efficiency
from paceline.predictor.kernels.roofline import layer_work
from paceline.predictor.schedule.device_step import DeviceStep
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.step import Origin, Phase, Step, Task
from paceline.step.schedule import schedule
from paceline.store import Launch, LayerTiming, Outcome, RankSteps, Status
from paceline.workload.precision import precision


def a_launch(launch_id="a1", study="s", **changes):
    fields = {
        "id": launch_id,
        "study": study,
        "created_at": "2026-01-01T00:00:00.000+00:00",
        "framework": "torch-ddp",
        "model": "resnet44",
        "world_size": 2,
        "nodes": 1,
        "batch_per_rank": 64,
        "precision": "fp32",
        "instrument": "none",
        "synchronised": True,
        "warmup_steps": 1,
        "job": {"position": 0},
        "environment": {"cores": 2},
        "outcome": Outcome(Status.RUNNING, ""),
    }
    return Launch(**{**fields, **changes})


def an_outcome():
    return Outcome(
        Status.FINISHED,
        "2026-01-01T00:01:00.000+00:00",
        ranks=(
            RankSteps(0, (0.5, 0.4), (0.5, 0.4), (2.3, 2.2)),
            RankSteps(1, (0.6, 0.5), (0.5, 0.4), (2.3, 2.2), (0.1, 0.05)),
        ),
        layers=(LayerTiming("conv1", 0.1, 0.2, 1728.0),),
        timeline=schedule([Task("forward", Phase.FORWARD, "compute", 0.1)]),
        facts={"exit_codes": [0, 0]},
    )


def data_parallel_step(layers, synchronisation, all_reduce, **costs):
    """The step of one representative worker; ``all_reduce`` None is a worker alone."""
    exchange = None if all_reduce is None else GradientExchange(synchronisation, all_reduce)
    return DeviceStep(layers, exchange, StepCosts(**costs)).tasks()


LAYERS = (
    LayerTiming("conv1", 0.2, 0.4, 4e6),
    LayerTiming("relu1", 0.1, 0.1, 0.0),
    LayerTiming("conv2", 0.2, 0.4, 8e6),
)


def timed_launch(number, *ranks, layers=(), timeline=None, **changes):
    """A finished launch: warm-up of 9 s, then these seconds of each rank."""
    records = tuple(
        RankSteps(rank, (9.0, *steps), (9.0, *steps)) for rank, steps in enumerate(ranks)
    )
    outcome = Outcome(
        Status.FINISHED, "2026", ranks=records, layers=tuple(layers), timeline=timeline
    )
    name = number if isinstance(number, str) else f"l{number}"
    return a_launch(name, world_size=len(ranks), outcome=outcome, **changes)


def timed_step(ranks, exposed):
    """Forward 0.3 s, backward 0.6 s, an all-reduce that ends ``exposed`` s after it."""
    tasks, starts = [], []
    for rank in range(ranks):
        for task, start in (
            (Task("forward", Phase.FORWARD, "compute", 0.3, rank=rank), 0.0),
            (Task("backward", Phase.BACKWARD, "compute", 0.6, rank=rank), 0.3),
            (
                Task(
                    "all-reduce",
                    Phase.COMMUNICATE,
                    "network",
                    exposed + 0.1,
                    rank=rank,
                    size_bytes=12e6,
                ),
                0.8,
            ),
            (Task("update", Phase.UPDATE, "compute", 0.01, rank=rank), 0.9 + exposed),
        ):
            tasks.append(task)
            starts.append(start)
    return Step(tuple(tasks), tuple(starts), Origin.MEASURED)


def study_launches(study="s", prefix="l", **changes):
    """One process: 1 s. Co-located: 1.1 s each, the slower of a step 1.2 s. Together: 1.25 s."""

    def of(number, *ranks, **own):
        return timed_launch(f"{prefix}{number}", *ranks, study=study, **changes, **own)

    return [
        of(1, [1.0, 1.0, 1.0, 1.0]),
        of(2, [1.0, 1.0, 1.0, 1.0]),
        of(3, [1.0, 1.0], layers=LAYERS, timeline=timed_step(1, 0.0), instrument="layers"),
        of(4, [1.2, 1.0, 1.2, 1.0], [1.0, 1.2, 1.0, 1.2], synchronised=False),
        of(5, [1.25] * 4, [1.25] * 4),
        of(6, [1.3] * 4, [1.3] * 4, timeline=timed_step(2, 0.05), instrument="phases"),
    ]


def comparison_launches(study="c", speeds=(("jax", 0.5), ("torch-ddp", 1.0))):
    """Plain launches of several frameworks on one and two processes; seconds per step of each."""
    return [
        timed_launch(
            f"{study}{framework}{ranks}{number}",
            *[[seconds * ranks**0.1 * (1 + 0.01 * number)] * 4] * ranks,
            study=study,
            framework=framework,
        )
        for framework, seconds in speeds
        for ranks in (1, 2)
        for number in range(3)
    ]


def a_profile(**changes):
    points = tuple(
        CollectivePoint(size, 1e-4 + size / 2e8, 1e-4, 1e-1) for size in (1e3, 1e5, 1e6, 1e7, 1e8)
    )
    fields = {
        "machine": "test machine",
        "measured_at": "2026-01-01T00:00:00.000+00:00",
        "source": "test",
        "threads": 1,
        "gemm_flops": {64: 1e9},
        "memory_bandwidth": 1e10,
        "all_reduce": {2: points},
        "colocation": {2: Colocation(1.0, 1.0)},
        "load_average": 0.0,
    }
    return MachineProfile(**{**fields, **changes})


def keep(store, launches):
    """Record finished launches."""
    for launch in launches:
        store.complete(launch)


def keep_profile(store):
    """Record a profile of this machine that is new enough to be used."""
    from paceline.measurement.probe.machine_probe import save_profile
    from paceline.store.database import now

    save_profile(store, a_profile(measured_at=now()))


def kernel_times(cost, device, precision_name, efficiency=None, *, dispatch_seconds=0.0, **how):
    """Seconds of each layer of a graph with a batch, from `layer_work`; ``how`` are its options."""
    constants = efficiency or load_efficiency()
    work = layer_work(cost.profile, cost.batch, device, precision_name, constants, **how)
    rate = constants.attainable_flops(device, precision(precision_name).compute)
    launch, memory = constants.launch(device), device.known_memory_bandwidth
    forward, backward = work.seconds(rate, memory, launch, dispatch_seconds)
    return list(map(LayerTime, work.names, forward, backward, work.gradient_bytes))
