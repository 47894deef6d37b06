"""Vectorised search of plans by step time and memory, and advice from it."""

from paceline.predictor.search.advice import Advice, Infeasible, Ranked, advise
from paceline.predictor.search.plan_search import Candidates, PlanSearch

__all__ = ["Advice", "Candidates", "Infeasible", "PlanSearch", "Ranked", "advise"]
