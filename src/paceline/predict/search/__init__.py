"""Searching plans: step time and memory of every one of them, on arrays."""

from paceline.predict.search.plans import Candidates, PlanSearch

__all__ = ["Candidates", "PlanSearch"]
