"""Step time and memory of other analytical models and of Paceline on published runs.

Rows are dense decoders under Megatron-like programs on A100 and H100 in Paceline's reference data.
Paceline gets program, links and plan of a row, as a user types them; its shipped corrections were
fitted to these rows too, so the errors under hold-outs are those of `paceline validate`.

llm-analysis is installed from the package index into a virtual environment of its own (--venv) and
gets the same rows, with its default efficiency (1) and with --efficiency. Calculon and SimuMax are
not on the package index ('calculon' there is another program), so they are not run.
"""

import json
import statistics
import subprocess
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from common import arguments, finish, machine

from paceline.predictor.predict import predict
from paceline.validation.published_job import PublishedJob, job_of
from paceline.validation.reference_data import layout_table, reference_table
from paceline.workload.ops import Attention, Embedding, Linear

PACKAGE = "llm-analysis==0.2.2"
WORKER = Path(__file__).with_name("rivals_llm_analysis.py")
DEVICES = {
    "a100_sxm_80gb": "a100-sxm-80gb",
    "a100_sxm_40gb": "a100-sxm-40gb",
    "h100_sxm_80gb": "h100-sxm-80gb",
}


def rows(most: int) -> list[tuple[dict[str, Any], PublishedJob]]:
    """Published runs as numbers for a rival and as jobs for Paceline, evenly from each source."""
    found: dict[str, list[tuple[dict[str, Any], PublishedJob]]] = {}
    for row in [*reference_table().measurements, *layout_table().measurements]:
        own = row.configuration
        known = own.device in DEVICES and own.tp and own.pp and own.sequence and not row.failed
        if not known or (own.ep or 1) > 1 or (own.cp or 1) > 1 or "expert" in own.model:
            continue
        job = job_of(own)
        numbers = described(job)
        if not job.cold_obstacle and numbers is not None:
            seconds = job.samples / (row.throughput / job.units_per_sample)
            measured = {"id": own.id, "measured": seconds, "memory": row.memory_bytes}
            found.setdefault(own.family, []).append(({**numbers, **measured}, job))
    share = max(1, most // max(1, len(found)))
    chosen = [every[:: max(1, len(every) // share)][:share] for every in found.values()]
    return [one for every in chosen for one in every]


def described(job: PublishedJob) -> dict[str, Any] | None:
    """The sizes of a job's network and its plan; None if the network is not a dense decoder."""
    nodes, plan = job.workload.graph.nodes, job.plan
    attention = [node.op for node in nodes if isinstance(node.op, Attention)]
    table = next((node.op for node in nodes if isinstance(node.op, Embedding)), None)
    inner = [n.op.out_features for n in nodes if "mlp" in n.name and isinstance(n.op, Linear)]
    if not attention or not attention[0].causal or table is None or not inner:
        return None
    micro_batch, count = plan.batches(job.workload.batch)
    return {
        "gpu": DEVICES[job.cluster.device.name],
        "layers": len(attention),
        "heads": attention[0].heads,
        "kv_heads": attention[0].kv_heads,
        "hidden": table.width,
        "vocabulary": table.vocabulary,
        "ffn": max(inner),
        "gated": any(node.name.endswith("mlp.gate") for node in nodes),
        "sequence": job.workload.sequence,
        "tp": plan.tp,
        "pp": plan.pp,
        "dp": plan.dp,
        "zero": plan.zero,
        "micro_batch": micro_batch,
        "micro_batches": count,
        "recompute": str(plan.recompute),
    }


def installed(folder: Path) -> Path:
    """The interpreter of a virtual environment with the rival."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PACKAGE, "setuptools<81"], check=True)
    return python


def rival(python: Path, jobs: Sequence[dict[str, Any]], efficiency: float) -> list[dict[str, Any]]:
    """Seconds, bytes and milliseconds per answer of llm-analysis for each row."""
    document = json.dumps({"efficiency": efficiency, "jobs": jobs})
    done = subprocess.run(
        [python, WORKER], input=document, capture_output=True, text=True, check=True
    )
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def own_answers(jobs: Sequence[PublishedJob]) -> list[dict[str, Any]]:
    """The same figures of Paceline, in a warm process."""
    answers = []
    for job in jobs:
        predict(job.workload, job.cluster, job.plan)
        started = time.perf_counter()
        found = predict(job.workload, job.cluster, job.plan)
        seconds, memory = found.step_seconds, float(found.memory.total_bytes)
        spent = 1e3 * (time.perf_counter() - started)
        answers.append({"seconds": seconds, "memory": memory, "milliseconds": spent})
    return answers


def score(
    name: str, given: Sequence[dict[str, Any]], said: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Errors of one program, printed as a line."""
    pairs = [(g, s) for g, s in zip(given, said, strict=True) if s.get("seconds")]
    time_errors = [abs(s["seconds"] / g["measured"] - 1) for g, s in pairs]
    memory = [abs(s["memory"] / g["memory"] - 1) for g, s in pairs if g["memory"]]
    figures = {
        "answered": len(pairs),
        "time_mean": statistics.fmean(time_errors),
        "time_median": statistics.median(time_errors),
        "memory_mean": statistics.fmean(memory) if memory else None,
        "milliseconds": statistics.median(s["milliseconds"] for _, s in pairs),
    }
    memory_text = f"{figures['memory_mean']:8.1%} ({len(memory)} rows)" if memory else "     –"
    print(
        f"{name:<28} {len(pairs):4} rows  time {figures['time_mean']:6.1%} mean "
        f"{figures['time_median']:6.1%} median  memory {memory_text}  "
        f"{figures['milliseconds']:6.2f} ms per answer"
    )
    return figures


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--venv", type=Path, default=Path(gettempdir()) / "paceline-rivals")
    parser.add_argument("--rows", type=int, default=60, help="published runs to compare")
    parser.add_argument("--efficiency", type=float, default=0.5, help="second efficiency to try")
    options = parser.parse_args()
    chosen = rows(12 if options.quick else options.rows)
    given = [numbers for numbers, _ in chosen]
    print(f"{len(given)} published runs of dense decoders on A100 and H100")
    figures: dict[str, Any] = {"machine": machine(), "rows": [one["id"] for one in given]}
    figures["paceline"] = score("paceline", given, own_answers([job for _, job in chosen]))
    try:
        python = installed(options.venv)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"llm-analysis does not install: {error}")
    else:
        for efficiency in (1.0, options.efficiency):
            name = f"llm-analysis, efficiency {efficiency:g}"
            figures[name] = score(name, given, rival(python, given, efficiency))
    print("Calculon, SimuMax: not on the package index, not run")
    finish(figures, options.json)


if __name__ == "__main__":
    main()
