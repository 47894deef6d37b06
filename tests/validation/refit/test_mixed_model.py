"""The mixed model finds effects that are there, and shrinks those it cannot see."""

from dataclasses import replace

import numpy as np
import pytest

from paceline.predictor.uncertainty.covariates import Covariates
from paceline.predictor.uncertainty.mixed_effects import Factor, Quantity
from paceline.validation.refit.mixed_model import Columns, solve
from paceline.validation.row_step_model import RowCovariates

QUANTITY = Quantity("computing", 0.0, 1.0, (Factor("device", 0.5), Factor("link", 0.5)))


def rows(count, devices=("slow", "fast"), seed=1):
    choose = np.random.default_rng(seed)
    return [Covariates(device=str(choose.choice(devices)), link="here") for _ in range(count)]


def fitted(where, measured, weights=None, quantity=QUANTITY):
    columns = Columns.of((quantity,), where)
    design = columns.members(quantity, where)
    counts = np.ones(len(measured)) if weights is None else weights
    return solve(columns, design, np.asarray(measured), counts).hierarchies()["computing"]


def test_effects_are_found_and_named():
    where = rows(400)
    noise = np.random.default_rng(2).normal(0, 0.02, 400)
    truth = np.array([0.3 if each.device == "slow" else -0.3 for each in where])
    devices = fitted(where, truth + noise).levels["device"]
    assert devices["slow"].value - devices["fast"].value == pytest.approx(0.6, abs=0.02)


@pytest.mark.thorough
def test_a_factor_that_explains_nothing_shrinks():
    choose = np.random.default_rng(3)
    where = [
        Covariates(device=f"d{choose.integers(20)}", link=f"s{choose.integers(20)}")
        for _ in range(2000)
    ]
    of_device = {f"d{n}": value for n, value in enumerate(choose.normal(0, 0.4, 20))}
    measured = [of_device[each.device] + choose.normal(0, 0.05) for each in where]
    found = fitted(where, measured)
    assert found.deviations["device"] == pytest.approx(0.4, abs=0.2)
    assert found.deviations["link"] < 0.25


def test_a_few_strange_rows_do_not_bend_the_rest():
    where = rows(200, devices=("one",))
    measured = np.full(200, 0.2)
    measured[:10] = 3.0
    assert fitted(where, measured).estimate(where[0]).value == pytest.approx(0.2, abs=0.05)


def test_one_row_moves_an_effect_less_than_many():
    alone = [Covariates(device="rare")] + [Covariates(device="usual")] * 50
    often = [Covariates(device="rare")] * 50 + [Covariates(device="usual")] * 50

    def rare(where, measured):
        return fitted(where, np.array(measured)).estimate(Covariates(device="rare")).value

    assert 0 < rare(alone, [0.5] + [0.0] * 50) < rare(often, [0.5] * 50 + [0.0] * 50) <= 0.51


def test_an_unseen_level_falls_back_to_the_constant_and_widens_the_interval():
    where = rows(300)
    truth = [0.3 if each.device == "slow" else -0.3 for each in where]
    found = fitted(where, truth)
    seen, unseen = found.estimate(where[0]), found.estimate(Covariates(device="new", link="here"))
    assert unseen.value == pytest.approx(found.estimate(Covariates(link="here")).value)
    assert unseen.variance > seen.variance + 0.5 * found.deviations["device"] ** 2


def test_what_is_thought_of_a_level_holds_until_it_is_measured():
    expected = Quantity("computing", 0.0, 1.0, (Factor("tuning", 0.2, expected={"tuned": -0.3}),))
    plain = [Covariates(tuning="plain")] * 50
    found = fitted(plain, np.zeros(50), quantity=expected)
    assert found.estimate(Covariates(tuning="tuned")).value == pytest.approx(-0.3, abs=0.1)
    both = plain + [Covariates(tuning="tuned")] * 50
    measured = fitted(both, np.zeros(100), quantity=expected)
    assert measured.estimate(Covariates(tuning="tuned")).value == pytest.approx(0.0, abs=0.05)


GROUPED = Quantity(
    "computing", 0.0, 1.0, (Factor("device", 0.5), Factor("machine", 0.3, grouping=True))
)


def rows_of_machines(seed=4, machines=40, of_each=10):
    """Rows of machines that differ by 20 %, and of two devices that differ by 60 %."""
    choose = np.random.default_rng(seed)
    where, measured = [], []
    for machine in range(machines):
        slow, own = machine % 2 == 0, choose.normal(0, 0.2)
        for _ in range(of_each):
            device = "slow" if slow else "fast"
            where.append(RowCovariates(device=device, machine=f"m{machine}"))
            measured.append((0.3 if slow else -0.3) + own + choose.normal(0, 0.02))
    return where, measured


def test_levels_of_a_grouping_factor_are_not_part_of_the_model():
    where, measured = rows_of_machines()
    found = fitted(where, measured, quantity=GROUPED)
    assert set(found.levels) == {"device"}
    assert found.deviations["machine"] == pytest.approx(0.2, abs=0.06)
    known, new = found.estimate(where[0]), found.estimate(Covariates(device="slow"))
    assert known == new, "the machine of a published row is like any other machine"


def test_every_job_adds_the_variance_among_groups():
    where, measured = rows_of_machines()
    found = fitted(where, measured, quantity=GROUPED)
    device = found.levels["device"]["slow"]
    variance = found.constant.variance + device.variance + found.deviations["machine"] ** 2
    assert found.estimate(Covariates(device="slow")).variance == pytest.approx(variance)


def test_many_rows_of_one_group_count_as_one_observation_of_its_device():
    """One slow machine with many rows moves its device no more than a machine with few rows."""
    few = [RowCovariates(device="d", machine=f"m{n}") for n in range(9)]
    many = few + [RowCovariates(device="d", machine="often")] * 200
    plain = replace(GROUPED, factors=GROUPED.factors[:1])
    measured = [0.0] * 9 + [0.5] * 200
    grouped, independent = (
        fitted(many, measured, quantity=each).estimate(Covariates(device="d")).value
        for each in (GROUPED, plain)
    )
    assert grouped < 0.15 < 0.4 < independent
