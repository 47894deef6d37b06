"""The emitted FSDP2 code, run on four processes: gradients and losses of one process."""

import json
import subprocess
import sys

import pytest

from paceline.predictor.emit.program_flags import program_flags
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.workload.workload import Workload

PLANS = {
    "sharded over dp and cp": Plan(dp=2, cp=2, zero=3),
    "every second block recomputed": Plan(
        dp=2, cp=2, zero=2, recompute=Recompute.FULL, recompute_every=2
    ),
    "copies of shards": Plan(dp=2, cp=2, zero=3, shard_group=2),
    "replicated": Plan(dp=2, cp=2),
}
TENSOR_PLANS = {
    "sharded over dp, tensors over tp": Plan(dp=2, tp=2, zero=3),
    "tensors over tp, recomputed": Plan(dp=2, tp=2, zero=2, recompute=Recompute.FULL),
}
DRIVER = """
import json, sys
import torch
import torch.distributed as dist

from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x

def gradients(model, tokens):
    model(tokens).float().square().mean().backward()
    grads = [p.grad for p in model.parameters()]
    return [g.full_tensor() if hasattr(g, "full_tensor") else g for g in grads]

def losses(model, tokens):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    found = []
    for _ in range(5):
        loss = model(tokens).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return found

def net():
    torch.manual_seed(1)
    return Net()

def work(rank, texts, store):
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=4)
    tokens = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(2))
    alone = gradients(net(), tokens)
    dp, cp = divmod(rank, 2)
    own = tokens[dp : dp + 1, 3 * cp : 3 * cp + 3]
    several = losses(net(), tokens)
    split = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    for name, (text, tolerance) in texts.items():
        model = net()
        words = {"model": model, "tensor_parallel_plan": split}
        exec(compile(text.replace('"cuda"', '"cpu"'), name, "exec"), words)
        if "over tp" in name or "losses" in name:
            mine = tokens[dp : dp + 1] if "over tp" in name else own
            for ours, theirs in zip(losses(model, mine), several, strict=True):
                dist.all_reduce(ours)
                torch.testing.assert_close(ours / 4, theirs, rtol=1e-5, atol=1e-7, msg=name)
            continue
        for ours, theirs in zip(gradients(model, own), alone, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance, msg=name)
    dist.destroy_process_group()

if __name__ == "__main__":
    texts, store = json.load(open(sys.argv[1])), sys.argv[2]
    torch.multiprocessing.spawn(work, (texts, store), nprocs=4)
"""


@pytest.mark.slow
@pytest.mark.torch
def test_gradients_are_those_of_one_process(tmp_path):
    texts = {
        f"{name}, {precision}": (_text(plan, precision), tolerance)
        for name, plan in PLANS.items()
        for precision, tolerance in (("fp32", 1e-6), ("bf16", 2e-2))
    }
    texts |= {name: (_text(plan, "fp32"), 0) for name, plan in TENSOR_PLANS.items()}
    texts |= {f"losses, {name}": (_text(plan, "fp32"), 0) for name, plan in PLANS.items()}
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    (tmp_path / "driver.py").write_text(DRIVER)
    words = [tmp_path / "driver.py", tmp_path / "texts.json", tmp_path / "store"]
    ran = subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def _text(plan: Plan, precision: str) -> str:
    return program_flags("fsdp", plan, Workload.of("gpt2_small", 1, 64, precision)).text
