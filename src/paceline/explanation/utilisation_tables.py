"""MFU as tables: from the peak to the achieved value, and published values."""

from paceline.explanation.utilisation import Utilisation
from paceline.render.table import Column, Table
from paceline.units import format_flops


def utilisation_parts(found: Utilisation) -> list[str | Table]:
    """Tables from the peak to the achieved MFU, and of the nearest published rows."""
    way = (
        ("peak", 1.0, f"{format_flops(found.peak_flops)}/s of each {found.device}"),
        ("attainable", found.attainable, "one device alone, at this batch and precision"),
        ("predicted", found.predicted, "the whole job with communication, waiting, overheads"),
        ("achieved", found.achieved, _share_of_prediction(found)),
    )
    parts: list[str | Table] = [
        Table(
            (Column("MFU"), Column("of peak", "%", scale=1e2, decimals=1), Column("meaning")),
            way,
            title=f"Utilisation of {found.job}",
            note=" ".join(found.notes),
        )
    ]
    if found.published:
        parts.append(
            Table(
                (
                    Column("nearest published rows"),
                    Column("MFU", "%", scale=1e2, decimals=1),
                    Column("differences"),
                ),
                tuple(
                    (o.description, o.utilisation, "; ".join(o.differences))
                    for o in found.published
                ),
            )
        )
    else:
        parts.append("No published row trains this network.")
    return parts


def _share_of_prediction(found: Utilisation) -> str:
    share = found.achieved / found.predicted if found.predicted > 0 else 0.0
    if share > 1.1:
        return f"{share:.2f} times the prediction: check the measurement"
    return f"{share:.0%} of the prediction"
