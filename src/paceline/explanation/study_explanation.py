"""An explanation that prints its waterfall, phases and missing measurements."""

from html import escape

from paceline.explanation.explain_step import Explanation
from paceline.explanation.explanation_tables import explanation_lines


class StudyExplanation(Explanation):
    """`paceline.explanation.explain_step.Explanation` as text in a terminal or notebook."""

    @classmethod
    def of(cls, explanation: Explanation) -> "StudyExplanation":
        """A printable copy of ``explanation``."""
        return cls(**vars(explanation))

    def __str__(self) -> str:
        return "\n".join(explanation_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
