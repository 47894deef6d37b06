"""Results of public functions: values that print as their command does."""

import copyreg
import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from paceline.errors import PacelineError

if TYPE_CHECKING:
    from paceline.render.table import Table
    from paceline.render.terminal_waterfall import WaterfallChart

Part: TypeAlias = "str | Table | WaterfallChart"
"""One piece of printed output."""
LONGEST_SUMMARY = 100


class PublicResult:
    """Base class of the result of a public function.

    Subclasses are frozen dataclasses with ``repr=False``, so that values can be compared and
    pickled. They define `parts`, and `to_dict` where field names need units.
    """

    schema: ClassVar[str] = ""
    """Kind and version of the JSON document, such as ``compare/1``."""

    def parts(self) -> Iterable[Part]:
        """Lines and tables, as the command prints them."""
        raise NotImplementedError

    def warnings(self) -> Iterable[str]:
        """Lines that the command prints on standard error."""
        return ()

    def summary(self) -> str:
        """One line for `repr`; by default the first line of the text."""
        return next((line.strip() for line in str(self).splitlines() if line.strip()), "")

    def to_dict(self) -> dict[str, Any]:
        """The fields of ``--json``: plain values, with units in the names."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """One mapping per row of `to_dataframe`; by default the first list of `to_dict`."""
        document = self.to_dict()
        for value in document.values():
            if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
                return value
        return [document]

    def to_dataframe(self) -> Any:
        """The rows as a data frame of pandas, or of polars if pandas is not installed.

        Nested values become columns with dotted names, such as ``plan.tp``.
        """
        rows = [_flat(row) for row in self.rows()]
        for name in ("pandas", "polars"):
            try:
                library = importlib.import_module(name)
            except ImportError:
                continue
            # polars reads the types of all rows, not of the first hundred.
            further = {"infer_schema_length": None} if name == "polars" else {}
            return library.DataFrame(rows, **further)
        raise PacelineError("to_dataframe needs pandas or polars", "run 'pip install pandas'")

    def __str__(self) -> str:
        return "\n".join(map(str, self.parts()))

    def __repr__(self) -> str:
        text = self.summary()
        short = text if len(text) <= LONGEST_SUMMARY else f"{text[: LONGEST_SUMMARY - 3]}..."
        return f"<{type(self).__name__} {short}>"

    def _repr_html_(self) -> str:
        return "".join(
            f"<pre>{escape(part)}</pre>" if isinstance(part, str) else part._repr_html_()
            for part in self.parts()
        )


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = _as_floats(value) if _has_float(value) else value
    return flat


def _has_float(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_float, value))
    return isinstance(value, float)


def _as_floats(value: Any) -> Any:
    """Integers among floats as floats, because lists of data frames have one type."""
    if isinstance(value, list | tuple):
        return [_as_floats(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _read_only(mapping: Mapping[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


# Results hold read-only mappings, such as the evidence of a prediction, which pickle rejects.
copyreg.pickle(MappingProxyType, lambda mapping: (_read_only, (dict(mapping),)))
