"""The page of the documentation on networks checked against PyTorch, written from the checks."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from workload_checks import WorkloadCheck, check

from paceline.workload import zoo

HEAD = """\
# Networks checked against PyTorch

Written by `script/workload-checks`; do not edit. Every network of the zoo is built as a PyTorch
module from its layer graph and compared with PyTorch {version}'s own counts of that module, at
batch {batch} and the published sequence length. `tests/measurement/test_workload_checks.py` holds a
part of this table on every run, and all of it with `script/test --all`.

- **parameters**: equal in the graph, the module, and the graph captured from the module.
- **forward**, **training**: FLOP by the graph over FLOP by `FlopCounterMode`, of the forward pass
  and of forward and backward, counted on the meta device.
- **captured**: training FLOP of the graph captured from the built module over those of the graph.
- **kept**: bytes kept for backward by the graph over those autograd saves on CPU tensors. They
  differ where CPU kernels are not fused as others are: dropout keeps its mask in 4 bytes instead of
  1, RMS norm, local response norm and recurrent layers keep parts that fused kernels do not.
- **counter as it is**: training FLOP of `FlopCounterMode` on fake CPU tensors without correction,
  over the corrected count. Below 1 it drops fused attention or oneDNN's LSTM, which have no
  formula there; above 1 it counts the weight gradient of grouped convolutions once per group.

Attention is counted as the products of its definition: two forward, four backward. PyTorch's
formula for fused attention on GPUs counts a fifth, the scores that the kernel computes again.

| network | parameters | training FLOP | forward | training | captured | kept | counter as it is |
|---|---:|---:|---:|---:|---:|---:|---:|
"""


def page(checks: Sequence[WorkloadCheck], version: str) -> str:
    """The page as Markdown."""
    return HEAD.format(version=version, batch=checks[0].batch) + "".join(map(_row, checks))


def write_page(path: Path) -> None:
    """Check every network of the zoo and write the page; progress goes to standard error."""
    import torch

    warnings.simplefilter("ignore")
    checks = []
    names = zoo.names()
    for number, name in enumerate(names, start=1):
        print(f"{number}/{len(names)} {name}", file=sys.stderr, flush=True)
        checks.append(check(name))
    version = torch.__version__.split("+")[0]
    path.write_text(page(checks, version), encoding="utf-8")


def _row(result: WorkloadCheck) -> str:
    equal = result.graph.parameters == result.torch.parameters == result.captured.parameters
    parameters = f"{result.graph.parameters:,}" + ("" if equal else " (differ)")
    uncorrected = result.uncorrected_training_flops / result.torch.training_flops
    cells = [
        result.model,
        parameters,
        f"{result.graph.training_flops:.4g}",
        f"{result.forward_ratio:.4f}",
        f"{result.training_ratio:.4f}",
        f"{result.captured_ratio:.4f}",
        f"{result.activation_ratio:.3f}",
        f"{uncorrected:.3f}",
    ]
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    write_page(Path(sys.argv[1]))
