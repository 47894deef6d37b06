"""Searching plans: step time and memory of every one of them, on arrays; advice from it."""

from paceline.predictor.search.advice import Advice, Infeasible, Ranked, advise
from paceline.predictor.search.plans import Candidates, PlanSearch

__all__ = ["Advice", "Candidates", "Infeasible", "PlanSearch", "Ranked", "advise"]
