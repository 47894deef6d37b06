"""Whether a prediction lies where published measurements have tested the predictor."""

from paceline.predictor.fitted.tables import fitted

MOST_DEVICES = 64
"""The largest job among the published measurements."""


def domain_notes(device: str, framework: str, devices: int) -> tuple[str, ...]:
    """What of a prediction lies outside the validated domain; nothing if all is inside."""
    published = fitted()
    outside = [
        f"no {what} '{name}'"
        for what, known, name in (
            ("device", published.devices, device),
            ("framework", published.frameworks, framework),
        )
        if name not in known
    ]
    if devices > MOST_DEVICES:
        outside.append(f"no job of more than {MOST_DEVICES} devices")
    if not outside:
        return ()
    return (f"outside the validated domain: among published measurements {', '.join(outside)}",)
