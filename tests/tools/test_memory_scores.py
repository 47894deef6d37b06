import numpy as np
import pytest

from fitting.memory_scores import measured_peaks, memory_error, memory_score
from fitting.memory_spread import fitted, mean_error, ratios
from paceline.constants import number
from paceline.validation.reference_data import layout_table


def layouts(*ids):
    wanted = {f"nanotron-{number:04}" for number in ids}
    return [row for row in layout_table().measurements if row.configuration.id in wanted]


def test_a_plan_with_empty_stages_is_predicted_to_fail():
    # 16 layers on 16 stages, cut by cost: none is left for the last stage.
    (row,) = layouts(727)
    assert row.failed and row.configuration.pp == 16
    score = memory_score([*layouts(1), row])
    assert (score.ran_predicted, score.failed_predicted) == (1.0, 1.0)


def test_peaks_without_tensor_parallelism_are_predicted():
    # Replicas on 8 and 16 devices, state whole and shared out, one sample and two.
    error = memory_error(layouts(1, 2, 3))
    assert abs(error.value) < 0.05


@pytest.mark.slow
def test_memory_of_all_layouts_that_were_tried():
    score = memory_score(layout_table().measurements)
    assert score.peaks > 580
    assert score.mean_error <= 0.06
    assert score.mean_error_anywhere <= 0.09
    assert abs(score.bias) <= 0.02
    assert score.ran_predicted >= 0.97
    assert score.failed_predicted >= 0.85


@pytest.mark.slow
def test_shipped_memory_constants_equal_the_fit():
    for name, value in fitted(measured_peaks(layout_table().measurements)).items():
        assert number(name) == pytest.approx(value)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["llama_h2048_l16", "llama_h4096_l32"])
def test_constants_of_one_model_predict_the_other(model):
    peaks = measured_peaks(layout_table().measurements)
    values = fitted([peak for peak in peaks if peak.model != model])
    found = ratios([peak for peak in peaks if peak.model == model], values)
    assert mean_error(found) <= 0.1
    assert abs(float(np.mean(np.log(found)))) <= 0.05
