"""The waterfall of a predicted step: from one device alone to the step under a plan."""

from paceline.predictor.prediction import Prediction
from paceline.step.waterfall import ItemKind, Waterfall, WaterfallItem

_NOTES = {
    "network": "exposed communication",
    "input": "waiting for batches",
    "memory and cache contention": "processes of one machine",
    "waiting for the slowest": "jitter between workers",
}


def predicted_waterfall(prediction: Prediction) -> Waterfall:
    """The waterfall from one device that computes its share to the predicted step.

    Measured input waiting of one device is a cause, not part of the ideal.
    """
    waited = prediction.ideal_input_seconds
    parts = prediction.parts_seconds
    alone = parts.pop("one device alone")
    parts["input"] = parts.get("input", 0.0) + waited
    ideal = WaterfallItem("ideal step", alone - waited, ItemKind.IDEAL, "one device alone")
    causes = [
        WaterfallItem(name, seconds, note=_NOTES.get(name, ""))
        for name, seconds in parts.items()
        if seconds > 0
    ]
    return Waterfall.between(ideal, prediction.step_seconds, causes)
