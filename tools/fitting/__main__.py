"""Refit the corrections of paceline.predictor.uncertainty from the reference measurements.

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
from fitting.block_floors import floors_table
from fitting.corrections_file import FILE, corrections_toml
from fitting.interval_calibration import calibrated
from fitting.kernel_curves import fitted_constants, left_out_table
from fitting.memory_scores import memory_error
from fitting.memory_spread import memory_table
from fitting.named_programs import programs_table
from fitting.plan_comparisons import comparison_table
from fitting.ratio_spread import ratio_table
from fitting.shipped_kernels import shipped_table
from fitting.step_scores import left_out_table as steps_left_out_table
from paceline.validation.hold_out import fitted_rows
from paceline.validation.reference_data import layout_table
from paceline.validation.refit.refit_corrections import Say, refit
from paceline.validation.refit.statements import FILE as STATEMENTS
from paceline.validation.refit.statements import STEPS_FILE, statements_bytes, step_statements_bytes
from paceline.validation.refit.step_constants import (
    fitted_step_constants,
    fitted_table,
    linearised_steps,
)

ROOT = Path(paceline.__file__).parent
REFERENCE = ROOT / "data" / "reference"


def main() -> int:
    """Refit, then write or compare."""
    options = _options()
    if options.order:
        print(comparison_table())
        return 0
    if options.ratios:
        print(ratio_table())
        return 0
    if options.floors:
        print(floors_table())
        return 0
    if options.experts:
        print(programs_table())
        return 0
    if options.memory:
        print(memory_table())
        return 0
    if options.kernels:
        constants = (f"{name} = {value:.3g}" for name, value in fitted_constants().items())
        print("\n".join(constants), left_out_table(), shipped_table(), sep="\n\n")
        return 0
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {text}", file=sys.stderr, flush=True)

    return _fit_steps(say) if options.steps else _refit(say, check=options.check)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="fit only the kernel curves, with each device held out, and score the shipped curves",
    )
    parser.add_argument(
        "--memory",
        action="store_true",
        help="fit only the memory constants of spread.toml, with each model held out",
    )
    parser.add_argument(
        "--ratios",
        action="store_true",
        help="fit only the error of ratios of two predictions, and its coverage by hold-out",
    )
    parser.add_argument(
        "--floors", action="store_true", help="print the host time per block of overheads.toml"
    )
    parser.add_argument(
        "--experts",
        action="store_true",
        help="print errors on rows of Megatron Bridge as typed, by host time of experts and rate "
        "of GB300",
    )
    parser.add_argument(
        "--order",
        action="store_true",
        help="fit only the difference above which two plans of a job are distinguishable",
    )
    parser.add_argument(
        "--steps",
        action="store_true",
        help="fit only the constants of kernels.toml to whole steps, with each source, generation, "
        f"framework and model in turn; writes {STEPS_FILE}",
    )
    return parser.parse_args()


def _fit_steps(say: Say) -> int:
    rows, statements = linearised_steps(list(fitted_rows().values()), say)
    fit = fitted_step_constants(rows, statements)
    print(fitted_table(fit), flush=True)
    say("without each source, generation, framework and model")
    print(f"\n{steps_left_out_table(rows, statements)}")
    (REFERENCE / STEPS_FILE).write_bytes(step_statements_bytes(statements))
    print(f"\nwrote {STEPS_FILE}; the fitted constants belong into kernels.toml")
    return 0


def _refit(say: Say, *, check: bool) -> int:
    rows = list(fitted_rows().values())
    model, paired, alone = refit(rows, say)
    say("memory of layouts")
    model = replace(model, memory=memory_error(layout_table().measurements))
    corrections, statements = ROOT.joinpath(*FILE), REFERENCE / STATEMENTS
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
