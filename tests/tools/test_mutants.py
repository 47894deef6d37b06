"""Mutants of small functions: each kind, at the right characters."""

from pathlib import Path

import pytest

from mutants import mutants
from mutate import Drawn, chosen_tests, draw


def texts(source):
    return {(m.kind, m.applied(source).strip()) for m in mutants(source)}


@pytest.mark.parametrize(
    ("source", "kind", "mutated"),
    [
        ("x = a < b", "comparison", "x = a <= b"),
        ("x = a is not None", "comparison", "x = a is None"),
        ("x = a not in b", "comparison", "x = a in b"),
        ("x = a + b", "arithmetic", "x = a - b"),
        ("x = a ** 2", "arithmetic", "x = a * 2"),
        ("x = -a", "arithmetic", "x = a"),
        ("x = 3", "constant", "x = 4"),
        ("x = 0.5", "constant", "x = 1.0"),
        ("x = True", "constant", "x = False"),
        ("x = min(a, b)", "min/max", "x = max(a, b)"),
        ("x = np.maximum(a, b)", "min/max", "x = np.minimum(a, b)"),
        ("x = f(a, b, c)", "swapped arguments", "x = f(b, a, c)"),
        ("x = a if b else c", "negated condition", "x = a if (not (b)) else c"),
        ("x = [a for a in b if c]", "negated condition", "x = [a for a in b if (not (c))]"),
        ("x = 'ß' + f(ä < b)", "comparison", "x = 'ß' + f(ä <= b)"),
    ],
)
def test_one_error(source, kind, mutated):
    assert (kind, mutated) in texts(source)


def test_a_dropped_return_belongs_to_its_function():
    source = "def f(a):\n    return a\n\n\n@g\ndef h(b=1):\n    return b + 1\n"
    found = {(m.kind, m.function, m.line) for m in mutants(source)}
    assert found == {
        ("dropped return", 1, 2),
        ("constant", 0, 6),
        ("dropped return", 5, 7),
        ("arithmetic", 5, 7),
        ("constant", 5, 7),
    }


def test_text_is_not_mutated():
    source = '"""Docs."""\nX = "a" + b\nraise E(f"{1 + 2}")\nassert 1 < 2\n'
    assert mutants(source) == []


def test_samples_depend_on_the_seed_alone(tmp_path):
    package = tmp_path / "src" / "paceline" / "predictor"
    package.mkdir(parents=True)
    (package / "a.py").write_text("def f(a, b):\n    return a + 2 * b if a < b else min(a, b)\n")
    first, again, other = ([d.diff for d in draw(tmp_path, seed, 5, "")] for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len(set(first)) == 5
    assert draw(tmp_path, 1, 5, "comm/") == []


def test_tests_of_the_function_come_first():
    (mutant, *_) = mutants("def f(a):\n    return a\n")
    reached = {
        "predictor/a.py:1": {
            "test_b.py::slow": 2.0,
            "test_b.py::quick": 0.1,
            "test_a.py::own": 3.0,
        },
        "predictor/a.py:9": {"test_a.py::other": 0.1},
        "predictor/b.py:1": {"test_c.py::none": 0.1},
    }
    assert chosen_tests(Drawn("predictor/a.py", mutant, ""), reached) == [
        *("test_a.py::own", "test_b.py::quick", "test_b.py::slow", "test_a.py::other")
    ]


def test_every_module_has_mutants_that_compile():
    source = (Path(__file__).parents[2] / "tools" / "mutants.py").read_text()
    found = mutants(source)
    assert {m.kind for m in found} >= {"comparison", "arithmetic", "constant", "dropped return"}
    for mutant in found[::20]:
        compile(mutant.applied(source), "mutant", "exec")
