"""An explanation that prints itself: the waterfall, the phases, and what is not known."""

from html import escape

from paceline.analyse.explain import Explanation
from paceline.report.tables.explanation import explanation_lines


class StudyExplanation(Explanation):
    """`paceline.analyse.explain.Explanation` as text in a terminal or notebook."""

    @classmethod
    def of(cls, explanation: Explanation) -> "StudyExplanation":
        """The same explanation, able to print itself."""
        return cls(**vars(explanation))

    def __str__(self) -> str:
        return "\n".join(explanation_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
