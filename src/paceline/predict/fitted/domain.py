"""Whether a prediction lies where published measurements have tested the predictor."""

from paceline.predict.fitted.computing import COMPUTING
from paceline.predict.fitted.tables import fitted

MOST_DEVICES = 64
"""The largest job among the published measurements."""


def domain_notes(device: str, framework: str, devices: int) -> tuple[str, ...]:
    """What of a prediction lies outside the validated domain; nothing if all is inside."""
    levels = fitted().effects.levels.get(COMPUTING.name, {})
    outside = [
        f"no {what} '{name}'"
        for what, factor, name in (
            ("device", "device", device),
            ("framework", "framework", framework),
        )
        if name not in levels.get(factor, {})
    ]
    if devices > MOST_DEVICES:
        outside.append(f"no job of more than {MOST_DEVICES} devices")
    if not outside:
        return ()
    return (f"outside the validated domain: among published measurements {', '.join(outside)}",)
