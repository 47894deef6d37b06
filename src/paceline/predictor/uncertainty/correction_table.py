"""Reader of the file of fitted corrections (script/fit-constants writes it)."""

from collections.abc import Mapping
from typing import Any

from paceline.constants import built_from_constants, constant, numbers_of
from paceline.predictor.uncertainty.correction_model import CorrectionModel, ErrorRule
from paceline.predictor.uncertainty.mixed_effects import Hierarchy, Uncertain
from paceline.predictor.uncertainty.quantities import QUANTITIES


@built_from_constants
def shipped_corrections() -> CorrectionModel:
    """The corrections that come with the package (see `paceline.constants`)."""
    fitted_on = constant("corrections.computing.constant").fitted_on
    return read_corrections(numbers_of("corrections").values, fitted_on)


def read_corrections(tables: Mapping[str, Any], fitted_on: str = "") -> CorrectionModel:
    """The model of a file of fitted corrections."""
    hierarchies = {}
    for quantity in QUANTITIES:
        own = tables[quantity.name]
        hierarchies[quantity.name] = Hierarchy(
            quantity,
            Uncertain(own["constant"], own["variance"]),
            own.get("deviations", {}),
            {
                factor: {level: Uncertain(*pair) for level, pair in seen.items()}
                for factor, seen in own.get("levels", {}).items()
            },
        )
    domain, memory = tables["domain"], tables["memory"]
    return CorrectionModel(
        hierarchies,
        {mode: ErrorRule(**rule) for mode, rule in tables["errors"].items()},
        fitted_on,
        frozenset(domain["devices"]),
        frozenset(domain["frameworks"]),
        int(domain["most_devices"]),
        Uncertain(memory["bias"], memory["deviation"] ** 2),
    )
