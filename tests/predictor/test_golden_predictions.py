"""Predictions pinned to 1e-9, so that every change of a number is deliberate.

``tools/golden_predictions.py`` writes the file again; the commit names the reason.
"""

import json
from pathlib import Path

import pytest
from golden_predictions import predicted

ENTRIES = json.loads(
    Path(__file__).with_name("golden_predictions.json").read_text(encoding="utf-8")
)


def name_of(entry):
    request = entry["request"]
    return "-".join(str(v) for k, v in request.items() if k in ("model", "cluster", "framework"))


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_a_prediction_is_unchanged(entry):
    found, expected = predicted(entry["request"]), entry["expected"]
    assert flat(found) == pytest.approx(flat(expected), rel=1e-9, abs=1e-15)


def test_the_requests_cover_plans_devices_and_precisions():
    requests = [entry["request"] for entry in ENTRIES]
    assert len(requests) >= 60
    varied = {key for request in requests for key in request}
    assert {"tp", "pp", "cp", "ep", "zero", "shard_group", "interleave", "pipeline"} <= varied
    assert {"recompute", "offload", "compression", "overlap", "bucket", "lora", "qlora"} <= varied
    assert {"measured_step", "jitter", "tuning", "link", "trace", "scale"} <= varied
    assert len({request.get("precision") for request in requests}) >= 6


def flat(value, name=""):
    """Numbers of nested dictionaries and lists, by the path to each."""
    if isinstance(value, dict):
        return {k: v for key, one in value.items() for k, v in flat(one, f"{name}/{key}").items()}
    if isinstance(value, list):
        return {k: v for i, one in enumerate(value) for k, v in flat(one, f"{name}/{i}").items()}
    return {name: -1.0 if value is None else float(value)}
