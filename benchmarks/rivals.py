"""Step time and memory of other analytical models and of Paceline on published runs.

Rows are dense decoders in 16 bits under Megatron-like programs on A100 and H100, from Paceline's
reference data.
Paceline gets program, links and plan of a row, as a user types them; its shipped corrections were
fitted to these rows too, so the errors under hold-outs are those of `paceline validate`.

llm-analysis is installed from the package index into a virtual environment of its own (--venv),
with its default efficiency (1) and with --efficiency. Calculon and SimuMax are not on the package
index ('calculon' there is another program): give their checkouts with --calculon and --simumax.
Every program gets the same rows and plans; rivals_NAME.py states what it cannot describe. Errors of
all programs are also printed for the rows that all of them answer.
"""

import json
import statistics
import subprocess
import time
import venv
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from common import arguments, finish, machine

from paceline.predictor.predict import predict
from paceline.validation.published_job import PublishedJob, job_of
from paceline.validation.reference_data import layout_table, reference_table
from paceline.workload.ops import Attention, Embedding, Linear

PACKAGES = ("llm-analysis==0.2.2", "setuptools<81")
CHECKOUTS = {
    "calculon": ("pandas", "psutil"),
    "simumax": ("numpy", "pandas", "sympy", "tabulate", "matplotlib", "tqdm", "graphviz"),
}
"""Programs that run from a checkout, with the packages that they import."""
PRECISIONS = ("bf16", "amp_bf16", "fp16", "amp_fp16")
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
        has_16_bits = job.workload.precision in PRECISIONS
        if not job.cold_obstacle and numbers is not None and has_16_bits:
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
        "interleave": plan.interleave,
        "fused_attention": plan.fused_attention,
        "sequence_parallel": plan.sequence_parallel,
    }


def installed(folder: Path, packages: Sequence[str]) -> Path:
    """The interpreter of a virtual environment with the packages."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run(
        [python, "-m", "pip", "install", "-q", *packages], check=True, capture_output=True
    )
    return python


def rival(
    python: Path, program: str, jobs: Sequence[dict[str, Any]], settings: dict[str, Any]
) -> list[dict[str, Any]]:
    """Seconds, bytes and milliseconds per answer of another program for each row."""
    worker = Path(__file__).with_name(f"rivals_{program}.py")
    document = json.dumps({"settings": settings, "jobs": jobs})
    done = subprocess.run(
        [python, worker], input=document, capture_output=True, text=True, check=True
    )
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def own_answers(jobs: Sequence[PublishedJob]) -> list[dict[str, Any]]:
    """The same figures of Paceline, in a warm process; milliseconds of CPU, as of the others."""
    answers = []
    for job in jobs:
        predict(job.workload, job.cluster, job.plan)
        started = time.process_time()
        found = predict(job.workload, job.cluster, job.plan)
        seconds, memory = found.step_seconds, float(found.memory.total_bytes)
        spent = 1e3 * (time.process_time() - started)
        answers.append({"seconds": seconds, "memory": memory, "milliseconds": spent})
    return answers


def score(
    name: str, given: Sequence[dict[str, Any]], said: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Errors of one program, printed as a line."""
    pairs = [(g, s) for g, s in zip(given, said, strict=True) if s.get("seconds")]
    if not pairs:
        print(f"{name:<28} answers no row: {said[0].get('error') if said else 'no rows'}")
        return {"answered": 0}
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
        f"{figures['milliseconds']:6.2f} ms of CPU per answer"
    )
    return figures


def answers_of_rivals(
    options: Namespace, jobs: Sequence[dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Answers of every program that can be run here; a line for each that cannot."""
    runs: list[tuple[str, str, Sequence[str], dict[str, Any]]] = [
        (f"llm-analysis, efficiency {each:g}", "llm_analysis", PACKAGES, {"efficiency": each})
        for each in (1.0, options.efficiency)
    ]
    for program, packages in CHECKOUTS.items():
        checkout = getattr(options, program)
        if checkout is None:
            print(f"{program}: not on the package index and no --{program} DIR, not run")
        else:
            runs.append((program, program, packages, {"checkout": str(checkout.resolve())}))
    found = {}
    for name, program, needed, settings in runs:
        try:
            python = installed(options.venv / program, needed)
            found[name] = rival(python, program, jobs, settings)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"{name} does not run: {error}")
    return found


def add_options(parser: ArgumentParser) -> None:
    """Options of every benchmark that runs other programs."""
    parser.add_argument("--venv", type=Path, default=Path(gettempdir()) / "paceline-rivals")
    parser.add_argument("--rows", type=int, default=60, help="published runs to compare")
    parser.add_argument("--efficiency", type=float, default=0.5, help="second efficiency to try")
    for program in CHECKOUTS:
        parser.add_argument(f"--{program}", type=Path, metavar="DIR", help=f"checkout of {program}")


def main() -> None:
    parser = arguments(__doc__)
    add_options(parser)
    options = parser.parse_args()
    chosen = rows(12 if options.quick else options.rows)
    given = [numbers for numbers, _ in chosen]
    print(f"{len(given)} published runs of dense decoders on A100 and H100")
    figures: dict[str, Any] = {"machine": machine(), "rows": [one["id"] for one in given]}
    answers = {"paceline": own_answers([job for _, job in chosen])}
    answers.update(answers_of_rivals(options, given))
    for name, said in answers.items():
        figures[name] = score(name, given, said)
    answered = [
        index
        for index in range(len(given))
        if all(s[index].get("seconds") for s in answers.values())
    ]
    print(f"rows that every program answers: {len(answered)}")
    for name, said in answers.items():
        common = [said[index] for index in answered]
        figures[f"{name}, common rows"] = score(name, [given[index] for index in answered], common)
    finish(figures, options.json)


if __name__ == "__main__":
    main()
