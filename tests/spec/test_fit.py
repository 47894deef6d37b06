"""The largest batch or sequence that fits."""

import pytest

import paceline as pl
from paceline.errors import InputError
from paceline.predictor.memory.fit_probability import LIKELY, fits_probability

CARD = {"device": "rtx4090"}


def test_one_sample_more_is_less_likely_to_fit():
    found = pl.predict("llama2_7b", **CARD, qlora=True, seq=1024, fit="batch")
    batch = found.workload.batch
    assert batch > 1 and f"{batch} samples" in found.notes[0]
    assert fits_probability(found) >= LIKELY
    words = {"recompute": found.plan.format_recompute, "qlora": True, "seq": 1024}
    more = pl.predict("llama2_7b", **CARD, **words, batch=batch + 1)
    assert fits_probability(more) < LIKELY


def test_the_longest_sequence_that_fits():
    found = pl.predict("llama2_7b", **CARD, qlora=True, fit="seq")
    assert found.workload.batch == 1
    assert found.workload.sequence % 128 == 0
    assert fits_probability(found) >= LIKELY
    longer = found.workload.sequence + 128
    words = {"recompute": found.plan.format_recompute, "qlora": True, "batch": 1}
    assert fits_probability(pl.predict("llama2_7b", **CARD, **words, seq=longer)) < LIKELY


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"fit": "batch", "batch": 4}, "--fit batch finds --batch"),
        ({"fit": "seq", "seq": 64}, "--fit seq finds --seq"),
        ({"fit": "batch"}, "not even a batch of 1 fits"),
    ],
)
def test_contradictions_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        pl.predict("llama2_13b", **CARD, **words)
    with pytest.raises(InputError, match="has no sequence length"):
        pl.predict("resnet50", **CARD, fit="seq")


def test_adapters_have_small_checkpoints():
    words = {"cluster": "dgx-h100", "nodes": 1, "batch": 1, "seq": 1024}
    whole = pl.predict("llama2_7b", **words).training(tokens=1e9)
    adapters = pl.predict("llama2_7b", **words, lora=16).training(tokens=1e9)
    assert adapters.checkpoint_bytes < 1e9 < 50e9 < whole.checkpoint_bytes
