"""Memory constants of `spread.toml`, fitted to measured peaks of layouts."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fitting.memory_scores import Peak, measured_peaks
from paceline.constants import number, overridden
from paceline.validation.reference_data import layout_table

_TRIED: Mapping[str, Sequence[float]] = {
    "spread.memory.gaps_share": [0.01 * count for count in range(11)],
    "spread.memory.tensors_ahead": range(20, 65, 2),
    "spread.memory.blocked_time": [5e-3 * count for count in range(1, 31)],
    "spread.memory.host_time": [1e-4 * count for count in range(1, 21)],
}
_ROUNDS = 4


def fitted(peaks: Sequence[Peak]) -> dict[str, float]:
    """The values of least mean error, by coordinate descent.

    Of values that are equally good it takes the middle one.
    """
    best = {name: number(name) for name in _TRIED}
    for _ in range(_ROUNDS):
        before = dict(best)
        for name, tried in _TRIED.items():
            errors = [mean_error(ratios(peaks, {**best, name: value})) for value in tried]
            good = [
                value for value, error in zip(tried, errors, strict=True) if error == min(errors)
            ]
            best[name] = good[len(good) // 2]
        if best == before:
            break
    return best


def ratios(peaks: Sequence[Peak], values: Mapping[str, float]) -> NDArray[np.float64]:
    """Predicted over measured peaks with these values."""
    with overridden(values):
        return np.array([peak.ratio for peak in peaks])


def mean_error(found: NDArray[np.float64]) -> float:
    """Mean distance of ratios from one."""
    return float(np.mean(np.abs(found - 1.0)))


def memory_table() -> str:
    """Values fitted to all layouts and with each model held out, with held-out errors."""
    peaks = measured_peaks(layout_table().measurements)
    names = " | ".join(name.rpartition(".")[2] for name in _TRIED)
    lines = [f"| fitted on | {names} | error there | error on others | bias on others |"]
    lines.append("|---" * (len(_TRIED) + 4) + "|")
    for model in ("", *sorted({peak.model for peak in peaks})):
        own = [peak for peak in peaks if peak.model != model]
        values = fitted(own)
        cells = [f"all but {model}" if model else "all"]
        cells += [f"{value:.3g}" for value in values.values()]
        cells.append(f"{mean_error(ratios(own, values)):.2%}")
        others = [peak for peak in peaks if peak.model == model]
        if others:
            found = ratios(others, values)
            cells += [f"{mean_error(found):.2%}", f"{np.mean(np.log(found)):.2%}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
