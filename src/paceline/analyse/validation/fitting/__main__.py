"""Refit the corrections of paceline.predictor.corrections from the reference measurements.

Writes data/constants/corrections.toml and data/reference/statements.csv.gz; the same rows and the
same predictor give the same bytes. With --check nothing is written and the exit code says whether
the corrections are those that a refit would write.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import paceline
from paceline.analyse.validation.fitting.calibration import calibrated
from paceline.analyse.validation.fitting.comparisons import comparison_table
from paceline.analyse.validation.fitting.kernels import fitted_constants, left_out_table
from paceline.analyse.validation.fitting.memory import memory_table
from paceline.analyse.validation.fitting.refit import refit
from paceline.analyse.validation.fitting.shipped_kernels import shipped_table
from paceline.analyse.validation.fitting.statements import FILE as STATEMENTS
from paceline.analyse.validation.fitting.statements import statements_bytes
from paceline.analyse.validation.hold_out import fitted_rows
from paceline.analyse.validation.memory_scores import memory_error
from paceline.analyse.validation.reference import layout_table
from paceline.predictor.corrections.table import FILE, corrections_toml

ROOT = Path(paceline.__file__).parent


def main() -> int:
    """Refit, then write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="only fit kernels, also without each device in turn, and score those that predict",
    )
    parser.add_argument(
        "--memory",
        action="store_true",
        help="only fit what spread.toml says of memory, to all models and without each in turn",
    )
    parser.add_argument(
        "--order",
        action="store_true",
        help="only fit by how much two plans of a job must differ to be told apart",
    )
    options = parser.parse_args()
    if options.order:
        print(comparison_table())
        return 0
    if options.memory:
        print(memory_table())
        return 0
    if options.kernels:
        constants = (f"{name} = {value:.3g}" for name, value in fitted_constants().items())
        print("\n".join(constants), left_out_table(), shipped_table(), sep="\n\n")
        return 0
    check = options.check
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {text}", file=sys.stderr, flush=True)

    rows = list(fitted_rows().values())
    model, paired, alone = refit(rows, say)
    say("memory of layouts")
    model = replace(model, memory=memory_error(layout_table().measurements))
    corrections, statements = ROOT.joinpath(*FILE), ROOT / "data" / "reference" / STATEMENTS
    before = corrections.read_text(encoding="utf-8") if corrections.exists() else ""
    if not check:
        statements.write_bytes(statements_bytes(paired, alone))
        corrections.write_text(corrections_toml(model), encoding="utf-8")
    text = corrections_toml(calibrated(model, paired, alone, rows, say))
    if check:
        print("as fitted" if text == before else "differs: corrections.toml")
        return 0 if text == before else 1
    corrections.write_text(text, encoding="utf-8")
    print(f"wrote {corrections.name} ({len(text)} bytes) and {statements.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
