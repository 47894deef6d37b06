"""Communication libraries from TOML: what one is like, and how a mistake is answered."""

import pytest

from paceline.constants import numbers_of
from paceline.errors import InputError
from paceline.located_toml import parse_toml
from paceline.predictor.comm.library import library, read_libraries

FILE = """\
[plain]
source = "a test"
message_overhead = "10us"
interference = 0.1
efficiency = { tcp = 0.9 }
[plain.hop]
any = { tcp = "20us" }
[plain.variant.ring]
operations = ["all_reduce", "all_gather"]
algorithm = "ring"
hop = "any"
[plain.rules]
all_reduce = [[8, 4096, "ring"], [inf, inf, "ring"]]

[quick]
like = "plain"
message_overhead = "1us"
"""


def read(old="", new=""):
    return read_libraries(parse_toml(FILE.replace(old, new, 1), "mine.toml"))


def test_a_library_has_what_the_one_it_is_like_has_unless_it_says_otherwise():
    plain, quick = read()["plain"], read()["quick"]
    assert plain.message_overhead_seconds == pytest.approx(1e-5)
    assert quick.message_overhead_seconds == pytest.approx(1e-6)
    assert quick.variants == plain.variants
    assert [variant.operation for variant in plain.variants] == ["all_reduce", "all_gather"]
    assert plain.variants[0].hop_seconds == {"tcp": pytest.approx(2e-5)}
    assert (plain.rules[0].ranks_below, plain.rules[0].bytes_below) == (8.0, 4096.0)


def test_a_library_may_be_like_one_of_another_file():
    mine = parse_toml('[mine]\nlike = "gloo"\ninterference = 0.2\n', "mine.toml")
    found = read_libraries(mine, numbers_of("libraries").tables())
    assert list(found) == ["mine"]
    assert found["mine"].variants == library("gloo").variants
    assert found["mine"].interference == 0.2


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (('like = "plain"', 'like = "plane"'), "line 16: no library named 'plane'", "this file"),
        (
            ("interference = 0.1\n", ""),
            "line 1: missing key 'interference' in [plain]",
            "interference =",
        ),
        (("interference", "interferense"), "line 4: unknown key 'interferense'", "'interference'"),
        (('hop = "any"', 'hop = "all"'), "line 11: no hop named 'all'", "one of any"),
        (('algorithm = "ring"', 'algorithm = "rings"'), "line 10: no algorithm of", "ring"),
        (
            ('"all_gather"]', '"all_gater"]'),
            "line 10: no operation named 'all_gater'",
            "all_gather",
        ),
        (('[8, 4096, "ring"]', "[8, 4096]"), "line 13: invalid rule [8, 4096]", '"ring"]'),
        (('"20us"', '"20 yards"'), "line 7: tcp: '20 yards' is not a duration", "200us"),
    ],
)
def test_a_mistake_is_named_with_its_line(change, message, hint):
    with pytest.raises(InputError) as caught:
        read(*change)
    assert message in caught.value.message
    assert hint in caught.value.hint
