import numpy as np
import pytest

from fitting.kernel_curves import left_out_scores, left_out_table

pytestmark = pytest.mark.thorough


def means(*kinds):
    scores = [score for score in left_out_scores() if score.kind in kinds]
    typical, own = (
        np.mean([getattr(each, name) for each in scores]) for name in ("typical", "own")
    )
    return len(scores), typical, own


def test_gemms_of_a_held_out_device():
    count, typical, own = means("product")
    assert count == 4
    assert typical <= 0.12
    assert own <= 0.09


def test_attention_of_a_held_out_device():
    count, typical, own = means("attention")
    assert count == 4
    assert typical <= 0.14
    assert own <= 0.12


def test_collectives_of_a_held_out_device():
    count, typical, own = means("collective")
    assert count == 3
    assert typical <= 0.12
    assert own <= 0.09


def test_the_table_has_a_line_per_kernel_and_device():
    assert len(left_out_table().splitlines()) == 2 + 11
