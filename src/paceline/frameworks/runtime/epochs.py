"""Epochs over real data: the samples of each step, the evaluation and its event.

The order of samples depends only on the seed and the epoch, and is split into global batches:
step n trains on the same samples with every framework and number of ranks. An incomplete
last batch is dropped. Standard library only.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import datasets
import synthetic
from channel import Events
from layer_graph import split_loss

Share = tuple[list[int], int]
"""Indices of a batch of test samples, and how many of them count; the rest is padding."""


class Epochs:
    """The samples of one rank by epoch; ``steps`` is the number of steps per epoch."""

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
                f"batch of {self.batch * world}; use a smaller batch"
            )

    def shares(self, epoch: int, most: "int | None" = None) -> list[list[int]]:
        """Return the indices of this rank's training samples by step, up to ``most`` steps."""
        order = synthetic.shuffled(len(self.train), self.seed, epoch)
        count = self.steps if most is None else min(most, self.steps)
        return [
            datasets.shard(order, step, self.batch, self.rank, self.world) for step in range(count)
        ]

    def test_shares(self) -> list[Share]:
        """Return this rank's test samples, in the same number of batches on all ranks."""
        everything, each = range(len(self.test)), self.batch
        rounds = -(-len(everything) // (each * self.world))
        found = []
        for number in range(rounds):
            start = (number * self.world + self.rank) * each
            counted = max(0, min(each, len(everything) - start))
            found.append((datasets.shard(everything, number, each, self.rank, self.world), counted))
        return found


def labelled_input(graph: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of the samples and labels of a classifier; raise for other networks."""
    _, losses, _ = split_loss(graph)
    inputs = graph["inputs"]
    if len(losses) == 1 and losses[0]["op"] == "cross_entropy" and len(inputs) == 2:
        labels = [name for name in losses[0]["inputs"] if name in inputs]
        if len(labels) == 1:
            return next(name for name in inputs if name != labels[0]), labels[0]
    raise datasets.DatasetError(
        f"data needs one label per sample; this graph reads {', '.join(inputs)} and ends in "
        f"{', '.join(node['op'] for node in losses) or 'no loss'}"
    )


def fitting(
    dataset: datasets.Dataset, graph: Mapping[str, Any], data: Mapping[str, Any]
) -> datasets.Dataset:
    """Return the dataset if its shape and classes match the graph; otherwise raise."""
    image, label = labelled_input(graph)
    wanted, classes = tuple(graph["inputs"][image]["shape"]), graph["inputs"][label]["limit"]
    if dataset.shape != wanted or dataset.classes > classes:
        raise datasets.DatasetError(
            f"{data['kind']} has samples of shape {dataset.shape} in {dataset.classes} classes, "
            f"but the graph needs shape {wanted} in {classes} classes"
        )
    return dataset


def train_by_epochs(
    training: Any,
    job: Mapping[str, Any],
    rank: int,
    events: Events,
    timed_steps: Callable[[range], None],
) -> None:
    """Train by epochs, with an evaluation after each, outside the timed steps.

    ``timed_steps`` runs the steps of a range. Every rank evaluates its share of the test samples;
    the reader of the event sums over ranks.
    """
    results = []
    for epoch in range(job["epochs"]):
        training.begin_epoch(epoch)
        steps = training.epochs.steps
        training.barrier()
        timed_steps(range(epoch * steps, (epoch + 1) * steps))
        start = time.perf_counter()
        samples, loss, correct = training.evaluate()
        results.append(
            {
                "steps": steps,
                "test_samples": samples,
                "test_loss": loss,
                "correct": correct,
                "evaluation_seconds": time.perf_counter() - start,
            }
        )
    events.write("epochs", rank=rank, epochs=results)
