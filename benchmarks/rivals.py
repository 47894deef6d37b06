"""Step time and memory of other analytical models and of Paceline on published runs.

Rows are dense decoders on A100 and H100 in Paceline's reference data whose tensor, pipeline and
micro-batch sizes are known. Paceline answers as a user types the row: program, links and plan, no
tuning, with corrections fitted without the row's own table. A rival is given the same row.

llm-analysis installs from the package index into a virtual environment of its own (--venv). Its
default efficiency of 1 is used (as typed), and the efficiency that its documentation
recommends for A100 clusters, 0.5 (--efficiency). Calculon (calculon-ai/calculon; the package
'calculon' of the index is another program) and SimuMax (MooreThreads/SimuMax) are not on the index.
"""

import json
import subprocess
import sys
import time
import venv
from pathlib import Path
from statistics import fmean, median
from typing import Any

from common import arguments, finish, machine

from paceline.validation.published_job import job_of
from paceline.validation.reference_data import reference_table
from paceline.workload.ops import Attention

PACKAGE = "llm-analysis==0.2.2"
SETUPTOOLS = "setuptools<81"
DEVICES = {
    "a100_sxm_80gb": "a100-sxm-80gb",
    "a100_sxm_40gb": "a100-sxm-40gb",
    "h100_sxm_80gb": "h100-sxm-80gb",
}
RECOMPUTATIONS = {"none": 0, "selective": 1, "full": 4}
ABSENT = {
    "calculon": "not on the package index under this name (another program has it)",
    "SimuMax": "not on the package index",
}
WORKER = Path(__file__).with_name("rivals_llm_analysis.py")


def rows(most: int) -> list[dict[str, Any]]:
    """Published runs as plain numbers, an equal share of each source."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in reference_table().rows:
        own = row.configuration
        known = own.tp and own.pp and own.micro_batch and own.sequence and row.step_seconds
        if own.device not in DEVICES or not known or (own.ep or 1) > 1:
            continue
        entry = described(row)
        if entry is not None:
            found.setdefault(own.family, []).append(entry)
    share = max(1, most // max(1, len(found)))
    return [one for own in found.values() for one in own[:: max(1, len(own) // share)][:share]]


def described(row: Any) -> dict[str, Any] | None:
    """A row with the sizes of its network; None if it is no decoder."""
    own, job = row.configuration, job_of(row.configuration)
    graph = job.workload.graph
    attention = [node.op for node in graph.nodes if isinstance(node.op, Attention)]
    if not attention or not attention[0].causal or "mega" not in job.framework.name:
        return None
    return {
        "id": own.id,
        "family": own.family,
        "gpu": DEVICES[own.device],
        "measured": row.step_seconds,
    }


def main() -> None:
    """Print errors and milliseconds per answer."""


if __name__ == "__main__":
    main()
