"""The board: several candidates side by side, each compared with the pinned one."""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from paceline.errors import InputError, PacelineError
from paceline.explore.answers import BoardColumn
from paceline.predictor.prediction import Prediction
from paceline.predictor.uncertainty.ratios import throughput_ratio

MOST_CANDIDATES = 8
_MOST_KEPT = 64


class ComparisonBoard:
    """Answers by candidate, the newest kept: an edit computes one candidate again."""

    def __init__(self, answer: Callable[[Mapping[str, Any]], BoardColumn]) -> None:
        self._answer = answer
        self._kept: OrderedDict[str, BoardColumn] = OrderedDict()

    def document(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of the board, in the order of ``candidates``; an error is a column too."""
        candidates, pinned = _checked(given)
        found = [self._answered(candidate) for candidate in candidates]
        reference = found[pinned]
        return {"candidates": [_column(one, reference) for one in found]}

    def _answered(self, candidate: Mapping[str, Any]) -> BoardColumn | PacelineError:
        key = json.dumps(candidate, sort_keys=True)
        if key not in self._kept:
            try:
                self._kept[key] = self._answer(candidate)
            except PacelineError as error:
                return error
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]


def _checked(given: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    candidates, pinned = given.get("candidates"), given.get("pinned", 0)
    if not isinstance(candidates, list) or not 1 <= len(candidates) <= MOST_CANDIDATES:
        raise InputError(f"candidates must be a list of 1 to {MOST_CANDIDATES} objects")
    if not all(isinstance(each, dict) for each in candidates):
        raise InputError("each candidate must be an object of options")
    if isinstance(pinned, bool) or not isinstance(pinned, int) or not 0 <= pinned < len(candidates):
        raise InputError(f"pinned must be the number of a candidate (got {pinned!r:.60})")
    return candidates, pinned


def _column(
    found: BoardColumn | PacelineError, reference: BoardColumn | PacelineError
) -> dict[str, Any]:
    if isinstance(found, PacelineError):
        return {"error": found.message, "hint": found.hint}
    column = found.document()
    if found is not reference and isinstance(reference, BoardColumn):
        column["ratio"] = _ratio(found.prediction, reference.prediction)
    return column


def _ratio(own: Prediction, pinned: Prediction) -> list[float] | None:
    """Throughput over that of the pinned candidate, with its interval; None across units."""
    sequences = own.workload.sequence, pinned.workload.sequence
    if (sequences[0] is None) != (sequences[1] is None):
        return None
    found = throughput_ratio(own, pinned)
    tokens = (sequences[0] or 1) / (sequences[1] or 1)
    return [tokens * found.value, tokens * found.low, tokens * found.high]
