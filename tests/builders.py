"""Ready-made values for tests: a launch, and how it ended."""

from paceline.predictor.replica_step import replica_step
from paceline.predictor.step_costs import GradientExchange, StepCosts
from paceline.step import Phase, Task, schedule
from paceline.store import Launch, LayerTiming, Outcome, RankSteps, Status


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
            RankSteps(1, (0.6, 0.5), (0.5, 0.4), (2.3, 2.2)),
        ),
        layers=(LayerTiming("conv1", 0.1, 0.2, 1728.0),),
        timeline=schedule([Task("forward", Phase.FORWARD, "compute", 0.1)]),
        facts={"exit_codes": [0, 0]},
    )


def data_parallel_step(layers, synchronisation, all_reduce, **costs):
    """The step of one representative worker; ``all_reduce`` None is a worker alone."""
    exchange = None if all_reduce is None else GradientExchange(synchronisation, all_reduce)
    return replica_step(layers, exchange, StepCosts(**costs))
