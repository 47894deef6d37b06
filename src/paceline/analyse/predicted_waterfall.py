"""The waterfall of a predicted step: from one device alone to the step under a plan."""

from paceline.analyse.waterfall import ItemKind, Waterfall, WaterfallItem
from paceline.predictor.prediction import Prediction

_NOTES = {
    "network": "messages that nothing hides",
    "input": "batches that are not there in time",
    "sharing the machine": "memory bandwidth and cache",
    "waiting for the slowest": "the slowest of all workers each time",
}


def predicted_waterfall(prediction: Prediction) -> Waterfall:
    """What each thing adds to one device that only does its share of the arithmetic.

    Input that one device alone was seen to wait for is a cause, not part of the ideal.
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
