"""Rows of Megatron Bridge as a user types them."""

from statistics import fmean

import pytest

from fitting.named_programs import options_of, scored_rows

LEAST_COVERED, LEAST_FITTING, LARGEST_ERROR = 0.85, 0.9, 0.10


def test_options_are_those_that_a_row_states():
    row = {"System": "DGX-GB300", "#-GPUs": "64", "Precision": "MXFP8", "GBS": "256", "MBS": "1"}
    row |= {"Sequence Length": "8192", "TP": "1", "PP": "4", "CP": "1", "EP": "n/a", "VP": "5"}
    assert options_of(row | {"FSDP": "0", "mode": "Pre-Training Performance"}) == {
        "device": "gb300",
        "topology": "16x4",
        "framework": "megatron-bridge",
        "precision": "mxfp8",
        "global_batch": 256,
        "micro_batch": 1,
        "seq": 8192,
        "pp": 4,
        "interleave": 5,
    }


@pytest.mark.thorough
def test_rows_of_a_named_program_are_predicted_as_typed():
    rows = scored_rows()
    assert len(rows) == 96
    assert fmean(abs(one.ratio - 1) for one in rows) <= LARGEST_ERROR
    assert fmean(one.covered for one in rows) >= LEAST_COVERED
    assert fmean(one.fits for one in rows) >= LEAST_FITTING
