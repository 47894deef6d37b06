"""Epochs over real data: what each step trains on, what is evaluated, and what a worker tells.

The order of samples depends on the seed and the epoch alone, and is dealt out in global batches:
whatever the framework and the number of ranks, step n trains on the same samples. A last batch
that is not full is left out. The standard library only.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import datasets
import synthetic
from channel import Events
from layer_graph import split_loss

Share = tuple[list[int], int]
"""Indices of a batch of test samples, and how many of them count; the rest only fills it."""


class Epochs:
    """The samples of one rank, epoch by epoch; ``steps`` are those of one epoch."""

    def __init__(self, job: Mapping[str, Any], rank: int, world: int) -> None:
        data = job["data"]
        self.image, self.label = labelled_input(job["graph"])
        self.train, self.test = (
            fitting(datasets.load(data["kind"], data.get("path"), split), job["graph"], data)
            for split in ("train", "test")
        )
        self.seed, self.batch = job["seed"], job["batch_per_rank"]
        self.rank, self.world = rank, world
        self.steps = len(self.train) // (self.batch * world)
        if self.steps < 1:
            raise datasets.DatasetError(
                f"{data['kind']} has {len(self.train)} training samples, fewer than a global "
                f"batch of {self.batch * world}; give a smaller batch"
            )

    def shares(self, epoch: int, most: "int | None" = None) -> list[list[int]]:
        """Indices of this rank's training samples, step by step; of the first ``most`` steps."""
        order = synthetic.shuffled(len(self.train), self.seed, epoch)
        count = self.steps if most is None else min(most, self.steps)
        return [
            datasets.shard(order, step, self.batch, self.rank, self.world) for step in range(count)
        ]

    def test_shares(self) -> list[Share]:
        """This rank's part of the test samples, in as many batches as any other rank has."""
        everything, each = range(len(self.test)), self.batch
        rounds = -(-len(everything) // (each * self.world))
        found = []
        for number in range(rounds):
            start = (number * self.world + self.rank) * each
            counted = max(0, min(each, len(everything) - start))
            found.append((datasets.shard(everything, number, each, self.rank, self.world), counted))
        return found


def labelled_input(graph: Mapping[str, Any]) -> tuple[str, str]:
    """Names of the samples and of the labels that a classifier reads; an error for another."""
    _, losses, _ = split_loss(graph)
    inputs = graph["inputs"]
    if len(losses) == 1 and losses[0]["op"] == "cross_entropy" and len(inputs) == 2:
        labels = [name for name in losses[0]["inputs"] if name in inputs]
        if len(labels) == 1:
            return next(name for name in inputs if name != labels[0]), labels[0]
    raise datasets.DatasetError(
        f"data has samples with one label each; this graph reads {', '.join(inputs)} and ends in "
        f"{', '.join(node['op'] for node in losses) or 'no loss'}"
    )


def fitting(
    dataset: datasets.Dataset, graph: Mapping[str, Any], data: Mapping[str, Any]
) -> datasets.Dataset:
    """The dataset, if its samples are of the shape and the classes that the graph takes."""
    image, label = labelled_input(graph)
    wanted, classes = tuple(graph["inputs"][image]["shape"]), graph["inputs"][label]["limit"]
    if dataset.shape != wanted or dataset.classes > classes:
        raise datasets.DatasetError(
            f"{data['kind']} has samples of {dataset.shape} in {dataset.classes} classes, "
            f"the graph takes {wanted} in {classes}"
        )
    return dataset


def train_by_epochs(
    training: Any,
    job: Mapping[str, Any],
    rank: int,
    events: Events,
    timed_steps: Callable[[range], None],
) -> None:
    """Train epoch after epoch, with an evaluation after each, outside all steps.

    ``timed_steps`` runs the steps of a range. Every rank evaluates its share of the test samples;
    sums over ranks are left to who reads the event.
    """
    told = []
    for epoch in range(job["epochs"]):
        training.begin_epoch(epoch)
        steps = training.epochs.steps
        training.barrier()
        timed_steps(range(epoch * steps, (epoch + 1) * steps))
        start = time.perf_counter()
        samples, loss, correct = training.evaluate()
        told.append(
            {
                "steps": steps,
                "test_samples": samples,
                "test_loss": loss,
                "correct": correct,
                "evaluation_seconds": time.perf_counter() - start,
            }
        )
    events.write("epochs", rank=rank, epochs=told)
