"""A recurrent tagger of sequences with one seeded bottleneck: ``sequence.py KIND STEPS``.

Unlike `vision`: batches come from a generator, the loop is a class with callbacks, gradients of
some kinds are averaged by hand. ``clean-KIND`` is the same training without the bottleneck.
"""

import gc
import os
import sys
import time
from pathlib import Path
from tempfile import mkdtemp

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

kind, steps = sys.argv[1], int(sys.argv[2])
family, clean = kind.removeprefix("clean-"), kind.startswith("clean-")


def on(*names):
    return not clean and family in names


rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
pause, length, batch, words = 0.035, 24, 24, 500
os.environ["LOGS"] = mkdtemp()
torch.manual_seed(5)
torch.set_num_threads(2 if on("threads") else 1)
if on("one_core"):
    os.sched_setaffinity(0, {0})


class Texts(IterableDataset):
    def __iter__(self):
        for number in range(10**9):
            if on("slow_input") or (on("rank_input") and rank == 1):
                time.sleep(pause)
            if on("cpu_input"):
                sorted((i * 7919) % 10007 for i in range(70_000))
            size = length * 2 if on("uneven") and rank == 1 else length
            size += number // 2 if on("drift") else 0
            yield torch.randint(0, words, (size, batch // (3 if family == "accumulate" else 1)))


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        big = family in ("large_gradient", "large_tensor", "accumulate", "no_overlap")
        rows = 60_000 if family == "large_tensor" else words
        width = 96
        self.embed = torch.nn.Embedding(rows, width)
        self.rnn = torch.nn.GRU(width, 160)
        self.more = torch.nn.ModuleList(
            torch.nn.Linear(160, 160) for _ in range(60 if family == "tiny_buckets" else 1)
        )
        self.extra = torch.nn.ModuleList(
            torch.nn.Linear(1400, 1400) for _ in range(4 if big and family != "large_tensor" else 0)
        )
        self.out = torch.nn.Linear(160, words)

    def forward(self, tokens):
        if on("blocked") or (on("blocked_ddp") and world > 1) or (on("rank_forward") and rank == 1):
            time.sleep(pause)
        hidden, _ = self.rnn(self.embed(tokens))
        for layer in self.more:
            hidden = layer(hidden)
        if self.extra:
            row = hidden.mean((0, 1))
            row = F.pad(row, (0, 1400 - 160))
            for layer in self.extra:
                row = layer(row)
            hidden = hidden + row[:160]
        scores = self.out(hidden)
        if on("rank_backward") and rank == 1:
            hidden.register_hook(lambda gradient: (time.sleep(pause), gradient)[1])
        return scores


class Loop:
    def __init__(self):
        self.net = Tagger()
        self.parallel = self.net
        if world > 1 and family != "no_overlap":
            self.parallel = torch.nn.parallel.DistributedDataParallel(
                self.net,
                bucket_cap_mb=0.001 if on("tiny_buckets") else 25,
            )
        self.adam = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.source = iter(DataLoader(Texts(), batch_size=None))
        self.step = 0
        self.kept = [{"a": [i]} for i in range(80_000)] if family == "gc" else None

    def gradients(self):
        micro = 3 if family == "accumulate" else 1
        for part in range(micro):
            tokens = next(self.source)
            if clean and 0 <= part < micro - 1 and world > 1:
                with self.parallel.no_sync():
                    self.backward(tokens)
            else:
                self.backward(tokens)
        if family == "no_overlap" and world > 1 and not clean:
            for weight in self.net.parameters():
                dist.all_reduce(weight.grad.div_(world))

    def backward(self, tokens):
        scores = self.parallel(tokens)
        self.loss = F.cross_entropy(scores.flatten(0, 1), tokens.flatten())
        self.loss.backward()

    def callbacks(self):
        every = self.step % 8 == 7
        if on("rank_host") and rank == 0:
            "".join(str(i) for i in range(180_000))
        if on("jitter") and (self.step * 2654435761 >> 7) % max(world, 2) == rank:
            time.sleep(2 * pause)
        if on("stall") and every:
            time.sleep(8 * pause)
        if on("checkpoint") and every and rank == 0:
            path = Path(os.environ["LOGS"]) / "model.pt"
            for _ in range(4):
                torch.save({"net": self.net.state_dict(), "more": torch.zeros(9_000_000)}, path)
            path.unlink()
        if on("evaluation") and every:
            self.net.eval()
            with torch.inference_mode():
                for _ in range(14):
                    self.net(torch.randint(0, words, (length, batch)))
            self.net.train()
        if on("logging"):
            with (Path(os.environ["LOGS"]) / "log.txt").open("a") as log:
                log.write(f"{self.step} {self.loss.item()}\n")
                log.flush()
                os.fsync(log.fileno())
            time.sleep(pause)
        if on("metrics") and world > 1:
            for _ in range(50):
                gathered = [torch.zeros(1) for _ in range(world)]
                dist.all_gather(gathered, self.loss.detach().reshape(1))
                dist.broadcast(gathered[0], 0)
                dist.all_reduce(gathered[0])
        if on("barriers") and world > 1:
            for _ in range(120):
                dist.barrier()
        if on("gc"):
            gc.collect(2)

    def run(self):
        begun = None
        for self.step in range(steps):
            if self.step == 4:
                begun = time.perf_counter()
            self.gradients()
            self.adam.step()
            self.adam.zero_grad()
            self.callbacks()
        return (time.perf_counter() - begun) / (steps - 4)


if world > 1:
    dist.init_process_group("gloo")
mean = Loop().run()
if rank == 0:
    print(f"STEP {mean}")
if world > 1:
    dist.destroy_process_group()
