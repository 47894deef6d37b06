"""Predictions of captured models say what is uncertain about the model."""

from dataclasses import replace

from paceline.predictor.prediction import Prediction
from paceline.workload.capture_notes import capture_notes


def with_model_notes(prediction: Prediction) -> Prediction:
    """The prediction with what is uncertain about a captured model."""
    notes = capture_notes(prediction.workload.graph)
    return replace(prediction, notes=(*prediction.notes, *notes))
