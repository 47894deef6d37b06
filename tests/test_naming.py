import pytest

from paceline.errors import UnknownNameError
from paceline.naming import look_up, nearest

MODELS = {"resnet50": 1, "resnet56": 2, "resnet50_v1.5": 3, "vgg16": 4}


def test_a_typo_is_answered_with_the_nearest_names():
    assert nearest("resnet5", MODELS)[0] in ("resnet50", "resnet56")
    assert nearest("ResNet50", MODELS)[0] == "resnet50"


def test_look_up_names_the_kind_and_the_hint():
    assert look_up("model", "vgg16", MODELS, "") == 4
    with pytest.raises(UnknownNameError) as caught:
        look_up("model", "vgg17", MODELS, "'paceline catalog models' lists all")
    assert "no model named 'vgg17'. Did you mean vgg16" in caught.value.message
    assert caught.value.hint == "'paceline catalog models' lists all"


def test_something_unlike_everything_gets_no_suggestion():
    with pytest.raises(UnknownNameError) as caught:
        look_up("model", "zzzzzz", MODELS, "")
    assert "Near" not in caught.value.message
