"""MFU as a table: from the peak down to what was reached, and what others reached."""

from paceline.analyse.utilisation import Utilisation
from paceline.report.table import Column, Table
from paceline.units import format_flops


def utilisation_parts(found: Utilisation) -> list[str | Table]:
    """The way from the peak to what was reached, then the nearest published rows."""
    way = (
        ("peak", 1.0, f"{format_flops(found.peak_flops)}/s of each {found.device}"),
        ("attainable", found.attainable, "one device alone, at this batch and precision"),
        ("predicted", found.predicted, "the whole job: messages, waiting, overheads"),
        ("reached", found.achieved, _beside(found)),
    )
    parts: list[str | Table] = [
        Table(
            (Column("MFU"), Column("of peak", "%", scale=1e2, decimals=1), Column("what it is")),
            way,
            title=f"Utilisation of {found.job}",
            note=" ".join(found.notes),
        )
    ]
    if found.published:
        parts.append(
            Table(
                (
                    Column("published, nearest"),
                    Column("MFU", "%", scale=1e2, decimals=1),
                    Column("what differs"),
                ),
                tuple((o.words, o.utilisation, "; ".join(o.differences)) for o in found.published),
            )
        )
    else:
        parts.append("No published row trains this network: nothing to compare with.")
    return parts


def _beside(found: Utilisation) -> str:
    share = found.achieved / found.predicted if found.predicted > 0 else 0.0
    if share > 1.1:
        return f"{share:.2f} times what is predicted: is the number right?"
    return f"{share:.0%} of what is predicted"
