"""Refit the constants and effects of paceline.predictor.fitted from the reference measurements.

Writes src/paceline/data/fitted/effects.toml and held_out.json.gz; the same rows and the same
predictor give the same bytes. With --check nothing is written and the exit code says whether
the files are those that a refit would write.
"""

import argparse
import sys
import time
from pathlib import Path

import paceline
from paceline.analyse.validation.fitting.refit import refit
from paceline.analyse.validation.reference import reference_table
from paceline.predictor.fitted.tables import (
    EFFECTS_FILE,
    HELD_OUT_FILE,
    effects_toml,
    held_out_bytes,
)

FOLDER = Path(paceline.__file__).parent / "data" / "fitted"


def main() -> int:
    """Refit, then write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {text}", file=sys.stderr, flush=True)

    result = refit(reference_table().measurements, say)
    files = {
        EFFECTS_FILE: effects_toml(result.fitted).encode("utf-8"),
        HELD_OUT_FILE: held_out_bytes(result.held_out),
    }
    say(result.fitted.fitted_on)
    if check:
        changed = [
            name
            for name, content in files.items()
            if not (FOLDER / name).exists() or (FOLDER / name).read_bytes() != content
        ]
        print(f"differs: {', '.join(changed)}" if changed else "as fitted")
        return 1 if changed else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (FOLDER / name).write_bytes(content)
        print(f"wrote {FOLDER / name} ({len(content)} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
