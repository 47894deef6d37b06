"""Launches on disk: append-only, crash-safe, versioned; tidy tables out."""

from paceline.store.database import Store, default_store_path
from paceline.store.launch import Launch, LayerTiming, Outcome, RankSteps, Status

__all__ = [
    "Launch",
    "LayerTiming",
    "Outcome",
    "RankSteps",
    "Status",
    "Store",
    "default_store_path",
]
