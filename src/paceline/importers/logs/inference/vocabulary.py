"""What the table of a program in ``data/logs`` states about its lines."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.importers.logs.inference.line_fields import FieldKind


@dataclass(frozen=True)
class Vocabulary:
    """Quantities of labels, patterns of settings and the last line of a program.

    With ``counts_samples`` the counter of a line is the number of samples of the epoch. With
    ``own_rates`` each rank prints its own samples per second.
    """

    labels: Mapping[str, FieldKind] = field(default_factory=dict)
    settings: tuple[tuple[str, re.Pattern[str]], ...] = ()
    finished: re.Pattern[str] | None = None
    counts_samples: bool = False
    own_rates: bool = False
