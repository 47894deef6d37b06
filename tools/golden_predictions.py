"""Write the golden predictions that the quick tests hold to 1e-9.

Run this only for a deliberate change of a prediction, and name the reason in the commit:
``.venv/bin/python tools/golden_predictions.py``. It prints the requests whose numbers moved.
"""

import json
import sys
from pathlib import Path
from typing import Any

import paceline
from paceline.predictor.prediction import Prediction
from predictor_walkthrough import PAGE, with_section

FILE = Path(__file__).parents[1] / "tests" / "predictor" / "golden_predictions.json"


def predicted(request: dict[str, Any]) -> dict[str, Any]:
    """The numbers of one prediction: seconds, samples per second and bytes, without rounding."""
    return numbers_of(paceline.predict(**request))


def numbers_of(prediction: Prediction) -> dict[str, Any]:
    """Step, interval, parts of the step and memory of a prediction, in seconds and bytes."""
    return {
        "step_seconds": prediction.step_seconds,
        "interval_seconds": list(prediction.step_interval_seconds),
        "samples_per_second": prediction.samples_per_second,
        "compute_seconds": prediction.compute_seconds,
        "exposed_communication_seconds": prediction.exposed_communication_seconds,
        "hidden_communication_seconds": prediction.breakdown.hidden_communication_seconds,
        "waiting_seconds": prediction.waiting_seconds,
        "phase_seconds": {str(p): s for p, s in prediction.breakdown.exposed.items()},
        "memory_bytes": {k: float(v) for k, v in prediction.memory.parts().items()},
        "fits": prediction.fits,
    }


def main() -> int:
    """Predict every request again, print the changed ones, and write the file."""
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    moved = 0
    for entry in entries:
        found = predicted(entry["request"])
        if found != entry.get("expected"):
            moved += 1
            before = entry.get("expected", {}).get("step_seconds")
            print(f"{entry['request']}: step {before} -> {found['step_seconds']} s")
        entry["expected"] = found
    FILE.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    print(f"{moved} of {len(entries)} predictions changed")
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
