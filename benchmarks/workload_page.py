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
module from its layer graph and compared with the counts of PyTorch {version} for that module, at
batch {batch} and the published sequence length. `tests/measurement/test_workload_checks.py` checks
a part of this table in every run, and all of it with `script/test --all`.

- **parameters**: equal in the graph, the module, and the graph captured from the module.
- **forward**, **training**: FLOP of the graph over FLOP of `FlopCounterMode`, for the forward pass
  and for forward and backward, counted on the meta device.
- **captured**: training FLOP of the graph captured from the built module over that of the graph.
- **kept**: bytes that the graph keeps for backward over bytes that autograd saves on CPU tensors.
  They differ where CPU kernels are not fused: dropout keeps its mask in 4 bytes instead of 1; RMS
  norm, local response norm and recurrent layers keep parts that fused kernels do not keep.
- **uncorrected**: training FLOP of `FlopCounterMode` on fake CPU tensors without correction,
  over the corrected count. Below 1 it omits fused attention or oneDNN's LSTM, for which it has no
  formula; above 1 it counts the weight gradient of grouped convolutions once per group.

Attention is counted as the GEMMs of its definition: two forward, four backward. PyTorch's
formula for fused attention on GPUs counts a fifth GEMM, the recomputation of the scores.

| network | parameters | training FLOP | forward | training | captured | kept | uncorrected |
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
