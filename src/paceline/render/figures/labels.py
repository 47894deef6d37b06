"""Labels of ticks in units, as short as they can be."""

from paceline.units import format_bytes, seconds_unit


def short_bytes(size: float) -> str:
    """``10 kB``: a size without insignificant digits."""
    if not 1 <= size < 1e18:
        return f"{size:.3g} B"
    return format_bytes(size).replace(".00 ", " ").replace(".0 ", " ")


def short_seconds(seconds: float) -> str:
    """``200 us``: a duration without insignificant digits."""
    factor, unit = (1.0, "s") if 1 <= seconds < 36000 else seconds_unit(seconds)
    return f"{float(f'{seconds * factor:.3g}'):g} {unit}"
