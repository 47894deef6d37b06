"""Constructors as people write them, through ``FILE.py:FUNCTION`` and ``paceline.capture``."""

import json
import textwrap

import pytest

import paceline
from commandline import run
from paceline.errors import InputError
from paceline.workload.capture import capture_notes, load_user_model

pytestmark = pytest.mark.torch

HABITS = """
    import copy

    import torch
    from torch import nn


    def moved():
        return nn.Linear(8, 8).to("cpu").to("cuda:0").cuda()


    def cast():
        return nn.Linear(8, 8).half().double().to(torch.float32)


    def laid_out():
        return nn.Sequential(nn.Flatten(), nn.Linear(8, 8)).to(memory_format=torch.channels_last)


    def initialised():
        layer = nn.Linear(8, 8)
        nn.init.trunc_normal_(layer.weight, std=0.02)
        return layer


    def rates():
        rates = [rate.item() for rate in torch.linspace(0, 0.1, 4)]
        return nn.Sequential(*[nn.Dropout(rate) for rate in rates], nn.Linear(8, 8))


    class Scaled(nn.Linear):
        def __init__(self):
            super().__init__(8, 8)
            self.scale = torch.linspace(0, 1, 8)
            self.halves = torch.tensor([4, 4])

        def forward(self, x):
            x = torch.cat(x.split(self.halves.tolist(), 1), 1)
            return super().forward(x) * self.scale


    def drawn():
        widths = [8, 8 + int(torch.randint(1, 2, (1,)).item()) - 1]
        return nn.Linear(*widths)


    def talks():
        print("building")
        return nn.Linear(8, 8)
"""


@pytest.fixture
def habits(tmp_path):
    path = tmp_path / "habits.py"
    path.write_text(textwrap.dedent(HABITS))
    return path


NAMES = ["moved", "cast", "laid_out", "initialised", "rates", "Scaled", "drawn", "talks"]


@pytest.mark.parametrize("name", NAMES)
def test_ordinary_constructors_are_captured(habits, name):
    graph = load_user_model(f"{habits}:{name}", ["4x8"])
    assert graph.cost(4).parameters == 72
    assert graph.cost(4).training_flops == 2 * 4 * 2 * 8 * 8
    notes = capture_notes(graph)
    assert notes == (
        ["the constructor reads tensor values, so it was run in real memory"] * (name == "drawn")
    )


def test_what_a_model_prints_is_not_in_the_json(habits):
    answer = run(["inspect", f"{habits}:talks", "--input", "4x8", "--json"])
    assert json.loads(answer)["model"] == "habits.talks"


def test_copied_layers_own_their_weights(tmp_path):
    path = tmp_path / "copies.py"
    path.write_text(
        "import copy\nfrom torch import nn\n"
        "def copied():\n"
        "    layer = nn.Linear(512, 512)\n"
        "    return nn.Sequential(layer, nn.ReLU(), copy.deepcopy(layer))\n"
        "def tied():\n"
        "    layer = nn.Linear(512, 512)\n"
        "    return nn.Sequential(layer, nn.ReLU(), layer).half().float()\n"
        "def encoder():\n"
        "    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)\n"
        "    return nn.TransformerEncoder(layer, 2)\n"
    )
    cost = load_user_model(f"{path}:copied", ["4x512"]).cost(4)
    assert [layer.parameters for layer in cost.layers] == [262_656, 0, 262_656]
    assert cost.activation_bytes == 2 * 4 * 512 * 4
    assert load_user_model(f"{path}:tied", ["4x512"]).cost(4).parameters == 262_656
    encoder = load_user_model(f"{path}:encoder", ["4x6x16"])
    assert capture_notes(encoder) == []


TRAINING_SCRIPT = """
    import argparse

    import torch
    from torch import nn
    from torch.nn import functional as F

    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=8)
    options = parser.parse_args()


    class Rotated(nn.Module):
        # Keeps its table for the length it saw last, as many do.
        def __init__(self):
            super().__init__()
            self.query, self.table = nn.Linear(options.width, options.width), None

        def forward(self, x):
            if self.table is None or len(self.table) != x.shape[1]:
                self.table = torch.outer(torch.arange(x.shape[1]).float(), torch.ones(8)).cos()
            return self.query(x) * self.table


    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(options.width, 3)

        def forward(self, x, targets=None):
            logits = self.layer(x)
            return logits, None if targets is None else F.cross_entropy(logits, targets)


    @torch.jit.script
    def gelu(x):
        return x * 0.5 * (1.0 + torch.erf(x / 1.41421))


    class Scripted(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(options.width, options.width)

        def forward(self, x):
            return gelu(self.layer(x))
"""


@pytest.mark.parametrize(
    ("name", "inputs", "flops"),
    [
        ("Rotated", ["4x6x8"], 2 * 4 * 6 * 2 * 64),
        ("Classifier", ["4x8", "targets=4:int64"], 2 * 4 * 2 * 24),
        ("Scripted", ["4x8"], 2 * 4 * 2 * 64),
    ],
)
def test_a_training_script_that_parses_arguments_gets_its_defaults(tmp_path, name, inputs, flops):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(TRAINING_SCRIPT))
    graph = load_user_model(f"{path}:{name}", inputs)
    assert graph.cost(4).training_flops == flops
    assert graph.cost(8).training_flops == 2 * flops
    assert capture_notes(graph) == []


class TestLayersDroppedByChance:
    @staticmethod
    def graph(rate):
        import torch

        class Dropping(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(3))

            def forward(self, x):
                for layer in self.layers:
                    if self.training and torch.rand([]) < rate:
                        continue
                    x = layer(x)
                return x

        return paceline.capture(Dropping(), torch.randn(4, 8))

    def test_a_rate_of_zero_is_certain(self):
        assert capture_notes(self.graph(0.0)) == []

    def test_another_rate_is_noted_and_every_layer_runs(self):
        graph = self.graph(0.1)
        assert graph.cost(4).forward_flops == 3 * 4 * 2 * 64
        assert "random number" in capture_notes(graph)[0]


ROUTED = """
    import torch
    from torch import nn


    class Routed(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList(nn.Linear(8, 8, bias=False) for _ in range(3))

        def forward(self, x, targets=None):
            x = torch.stack(x) if isinstance(x, list) else x
            chosen = x.sum(-1).argsort().argsort() % 3
            y = torch.zeros_like(x)
            for number, expert in enumerate(self.experts):
                rows = torch.nonzero(chosen == number)[:, 0]
                y[rows] = expert(x[rows])
            return y


    def routed():
        return Routed(), torch.randn(6, 8)


    def detector():
        samples = [torch.randn(8) for _ in range(6)]
        return Routed(), (samples, [{"label": torch.tensor([1])} for _ in samples])
"""


@pytest.mark.parametrize("name", ["routed", "detector"])
def test_what_depends_on_values_is_run_once_on_example_data(tmp_path, name):
    path = tmp_path / "routed.py"
    path.write_text(textwrap.dedent(ROUTED))
    graph = load_user_model(f"{path}:{name}")
    assert graph.cost(6).forward_flops == 6 * 2 * 64
    assert graph.cost(18).forward_flops == 18 * 2 * 64
    assert any("one training step was run" in note for note in capture_notes(graph))


def test_what_depends_on_values_is_refused_without_data(tmp_path):
    path = tmp_path / "routed.py"
    path.write_text(textwrap.dedent(ROUTED))
    with pytest.raises(InputError, match=r"routed\.py:16: .*size depends on the data") as refusal:
        load_user_model(f"{path}:routed", ["6x8"])
    assert "example inputs" in refusal.value.hint


def test_a_constructor_that_reads_values_has_a_limit(tmp_path, monkeypatch):
    from paceline.workload.capture import construction

    path = tmp_path / "large.py"
    path.write_text(
        "import torch\nfrom torch import nn\n"
        "def make():\n"
        "    nn.Linear(1, int(torch.randint(1, 2, (1,)).item()))\n"
        "    return nn.Linear(64, 64)\n"
    )
    assert load_user_model(f"{path}:make", ["4x64"]).cost(4).parameters == 64 * 65
    monkeypatch.setattr(construction, "REAL_BYTES_ALLOWED", 10_000)
    with pytest.raises(InputError, match=r"reads tensor values and needs more than 10\.0 kB"):
        load_user_model(f"{path}:make", ["4x64"])


def test_grouped_products_are_counted_in_any_type():
    import torch

    class Grouped(torch.nn.Module):
        def __init__(self, dtype):
            super().__init__()
            self.experts = torch.nn.Parameter(torch.randn(4, 8, 16, dtype=dtype))

        def forward(self, rows):
            ends = torch.arange(1, 5, dtype=torch.int32) * (rows.shape[0] // 4)
            return torch._grouped_mm(rows, self.experts, offs=ends)

    for dtype in (torch.float32, torch.bfloat16):
        cost = paceline.capture(Grouped(dtype), torch.randn(32, 8, dtype=dtype)).cost(32)
        assert cost.forward_flops == 2 * 32 * 8 * 16
        assert cost.training_flops == 2 * cost.forward_flops  # rows have no gradient


def test_a_refusal_names_the_users_line_and_the_librarys(tmp_path, monkeypatch):
    from paceline.workload.capture import error_messages as problems

    library = tmp_path / "library"
    library.mkdir()
    (library / "odd_layers.py").write_text("def choose(x):\n    return x if x.mean() > 0 else -x\n")
    monkeypatch.syspath_prepend(str(library))
    monkeypatch.setattr(problems, "_LIBRARIES", (*problems._LIBRARIES, str(library)))
    path = tmp_path / "mine.py"
    path.write_text(
        "import odd_layers\nfrom torch import nn\n"
        "class Mine(nn.Linear):\n"
        "    def __init__(self): super().__init__(8, 8)\n"
        "    def forward(self, x):\n"
        "        return odd_layers.choose(super().forward(x))\n"
    )
    with pytest.raises(InputError, match=r"^mine\.py:6 \(odd_layers\.py:2\): reads the value"):
        load_user_model(f"{path}:Mine", ["4x8"])


def test_what_is_uncertain_about_a_model_reaches_its_prediction(habits):
    answer = paceline.predict(f"{habits}:drawn", device="v100_sxm2_16gb", input=["4x8"])
    assert any("the constructor reads tensor values" in note for note in answer.notes)
