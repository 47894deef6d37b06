"""What a user points at: files that work, and one clear line for each that does not."""

import sys
import textwrap

import pytest

from paceline.errors import InputError, PacelineError, UnknownNameError
from paceline.spec.resolve_model import is_user_model
from paceline.workload.capture import load_user_model
from paceline.workload.capture.inputs import InputShape, parse_input, parse_inputs
from paceline.workload.capture.python_file import parse_factory_call

torch_needed = pytest.mark.torch


def write(folder, text, name="model.py"):
    pytest.importorskip("torch")
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


NET = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, width=8):
            super().__init__()
            self.conv = nn.Conv2d(3, width, 3)
            self.head = nn.Linear(width, 10)

        def forward(self, x):
            return self.head(self.conv(x).relu().mean((2, 3)))

    def make_model():
        return Net()

    module = Net(4)
"""


@torch_needed
@pytest.mark.parametrize(("name", "width"), [("make_model", 8), ("Net", 8), ("module", 4)], ids=str)
def test_a_function_a_class_and_a_module_can_be_named(tmp_path, name, width):
    path = write(tmp_path, NET)
    graph = load_user_model(f"{path}:{name}", ["4x3x10x10"])
    cost = graph.cost(4)
    assert graph.name == f"model.{name}"
    assert cost.parameters == width * 28 + (width + 1) * 10
    assert cost.forward_flops == 4 * 2 * (width * 27 * 64 + width * 10)
    assert [layer.name for layer in cost.layers] == ["conv", "Net", "head"]


@torch_needed
@pytest.mark.parametrize(
    ("call", "width"),
    [("Net(6)", 6), ("Net(width=5)", 5), ("wrap(Net, [Size(3)])", 3), ("Net(max(2, 1))", None)],
    ids=str,
)
def test_arguments_are_values_and_calls_of_the_file(tmp_path, call, width):
    more = """
    class Size:
        def __init__(self, width):
            self.width = width

    def wrap(made, sizes, /):
        return made(sizes[0].width)
    """
    path = write(tmp_path, NET + more)
    if width is None:
        with pytest.raises(UnknownNameError, match="named 'max'"):
            load_user_model(f"{path}:{call}", ["4x3x10x10"])
        return
    graph = load_user_model(f"{path}:{call}", ["4x3x10x10"])
    assert graph.cost(4).parameters == width * 28 + (width + 1) * 10
    assert is_user_model(f"{path}:{call}")


@pytest.mark.parametrize("call", ["Net(", "Net().cuda()", "3", "a b", "(" * 500, "Net(1)(2)"])
def test_factory_must_be_a_name_or_a_call(call):
    with pytest.raises(InputError, match="neither a name nor a call"):
        parse_factory_call(call)


@torch_needed
@pytest.mark.parametrize("is_package", [True, False], ids=["package", "folder"])
def test_relative_imports_of_a_package(tmp_path, is_package):
    folder = tmp_path / f"nets_{is_package}" / "parts"
    folder.mkdir(parents=True)
    if is_package:
        write(folder.parent, "", "__init__.py")
        write(folder, "", "__init__.py")
    write(folder.parent, "WIDTH = 3\n", "sizes.py")
    write(folder, "DEPTH = 2\n", "depths.py")
    path = write(
        folder,
        """
        from torch import nn
        from ..sizes import WIDTH
        from .depths import DEPTH

        def make():
            return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH)))
        """,
    )
    before = list(sys.path)
    assert load_user_model(f"{path}:make", ["4x3"]).cost(4).parameters == 2 * 12
    assert sys.path == before


@torch_needed
def test_a_missing_module_is_named(tmp_path):
    path = write(tmp_path, "import surely_not_installed.layers\n")
    with pytest.raises(InputError, match=r"model\.py:1: .*surely_not_installed") as refusal:
        load_user_model(f"{path}:make", ["4x3"])
    assert "install 'surely_not_installed'" in refusal.value.hint


@torch_needed
def test_a_function_may_bring_its_example_inputs_and_its_neighbours(tmp_path):
    write(tmp_path, "WIDTH = 6\n", "settings.py")
    path = write(
        tmp_path,
        """
        import torch
        from settings import WIDTH

        def make():
            return torch.nn.Linear(WIDTH, 2), {"input": torch.randn(5, WIDTH)}
        """,
    )
    assert load_user_model(f"{path}:make").cost(5).forward_flops == 5 * 2 * 6 * 2


@torch_needed
def test_integer_inputs_are_named_with_their_type(tmp_path):
    path = write(
        tmp_path,
        """
        import torch

        class Words(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.nn.Embedding(100, 16)

            def forward(self, tokens, weights):
                return self.table(tokens).mul(weights[..., None]).sum()
        """,
    )
    graph = load_user_model(f"{path}:Words", ["tokens=4x7:int64", "weights=4x7"])
    assert graph.inputs["tokens"].limit == 100
    assert graph.inputs["weights"].dtype == "float"
    with pytest.raises(InputError, match=r"model\.py:10: .*used as indices") as refusal:
        load_user_model(f"{path}:Words", ["tokens=4x7", "weights=4x7"])
    assert ":int64" in refusal.value.hint


@torch_needed
@pytest.mark.slow
def test_seven_billion_parameters_take_no_memory(tmp_path):
    import resource

    path = write(
        tmp_path,
        """
        from torch import nn

        def make_model():
            return nn.Sequential(*[nn.Linear(20_000, 20_000, bias=False) for _ in range(18)])
        """,
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    graph = load_user_model(f"{path}:make_model", ["2x20000"])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert graph.cost(2).parameters == 7_200_000_000
    assert grown < 10**6  # kilobytes


REFUSED = """
    import torch
    from torch import nn

    class Branches(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y if y.mean() > 0 else -y

    def branches():
        return Branches(4, 4)

    def fails():
        raise ValueError("depth must be even")

    def needs(depth):
        return nn.Linear(4, 4)

    def number():
        return 3

    def lazy():
        return nn.LazyLinear(3)

    def with_memory():
        import numpy
        return nn.Linear(4, 4, bias=bool(numpy.ones((2**25, 2**25)).any()))

    constant = 3
"""


@torch_needed
@pytest.mark.parametrize(
    ("name", "shape", "message", "hint"),
    [
        ("branches", "2x4", r"model\.py:8: reads the value of a tensor", "shapes"),
        ("fails", "2x4", r"model\.py:14: ValueError: depth must be even", ""),
        (
            "needs",
            "2x4",
            r"model\.py:needs has required arguments: depth",
            "model.py:needs(depth=...)",
        ),
        ("number", "2x4", r"model\.py:number returns an int", "function"),
        ("lazy", "2x4", r"model\.py:23: has a lazy layer", "nn.Linear"),
        ("constant", "2x4", r"model\.py:constant is an int", "function"),
        ("with_memory", "2x4", r"model\.py:27 \(.*\): allocates real memory", "torch"),
        ("branches", "2x5", r"model\.py:7: RuntimeError", "plain PyTorch"),
    ],
)
def test_a_model_that_cannot_be_captured_names_the_line(tmp_path, name, shape, message, hint):
    path = write(tmp_path, REFUSED)
    with pytest.raises(InputError, match=message) as refusal:
        load_user_model(f"{path}:{name}", [shape])
    assert hint in refusal.value.hint
    assert "\n" not in refusal.value.message


@torch_needed
def test_real_weights_from_elsewhere_are_refused_when_large(tmp_path, monkeypatch):
    import torch

    from paceline.workload.capture import python_file

    pretrained = torch.nn.Linear(8, 8)  # made outside of any fake mode
    monkeypatch.setitem(sys.modules, "pretrained", pretrained)
    path = write(tmp_path, "import pretrained\ndef make(): return pretrained\n")
    assert load_user_model(f"{path}:make", ["2x8"]).cost(2).parameters == 72
    monkeypatch.setattr(python_file, "REAL_BYTES_ALLOWED", 200)
    with pytest.raises(InputError, match="288 B of real memory, most of it in 'weight'"):
        load_user_model(f"{path}:make", ["2x8"])


@torch_needed
def test_a_wrong_name_suggests_the_right_one(tmp_path):
    path = write(tmp_path, NET)
    with pytest.raises(UnknownNameError, match="Did you mean make_model"):
        load_user_model(f"{path}:make_modl", ["4x3x10x10"])


@torch_needed
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def broken(:\n", r"model\.py:1: "),
        ("import no_such_package\n", r"model\.py:1: ModuleNotFoundError: .*no_such_package"),
        ("import sys\nsys.exit(3)\n", "exits when it is imported"),
    ],
)
def test_a_file_that_does_not_run_names_the_line(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message):
        load_user_model(f"{path}:make_model", ["2x2"])


@torch_needed
def test_missing_inputs_error_shows_the_option(tmp_path):
    path = write(tmp_path, NET)
    with pytest.raises(InputError) as refusal:
        load_user_model(f"{path}:make_model")
    assert "--input" in refusal.value.hint


def test_a_file_without_a_function_offers_one(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("class Helper: ...\ndef make_net(): ...\n")
    with pytest.raises(InputError) as refusal:
        load_user_model(str(path))
    assert refusal.value.hint == f"use {path}:make_net"


@pytest.mark.parametrize("target", ["missing.py:make", "missing.onnx", "missing.json"])
def test_missing_file_error_lists_existing_files(tmp_path, target):
    (tmp_path / f"other{target.split('.')[1].split(':')[0].join(['.', ''])}").write_text("")
    with pytest.raises(InputError, match=r"file not found: .*missing\.") as refusal:
        load_user_model(str(tmp_path / target))
    assert "other." in refusal.value.hint


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "weights.pt").write_bytes(b"")
    with pytest.raises(InputError, match="unsupported model file"):
        load_user_model(str(tmp_path / "weights.pt"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("32x3x224x224", InputShape((32, 3, 224, 224))),
        ("8X1024:int", InputShape((8, 1024), "int64")),
        ("tokens=8×16:long", InputShape((8, 16), "int64", "tokens")),
        ("4", InputShape((4,))),
    ],
)
def test_inputs_are_read_as_people_write_them(text, expected):
    assert parse_input(text) == expected


@pytest.mark.parametrize("text", ["", "axb", "3x-1", "0x3", "3x3:complex", "=3x3", "3,3"])
def test_inputs_that_make_no_sense_are_refused(text):
    with pytest.raises(PacelineError):
        parse_input(text)


def test_named_inputs_are_last():
    assert [given.name for given in parse_inputs(["3x3", "a=2x2"])] == [None, "a"]
    with pytest.raises(InputError, match="without a name follows"):
        parse_inputs(["a=2x2", "3x3"])


@torch_needed
def test_a_registered_container_of_tensors_is_an_input(tmp_path):
    path = tmp_path / "graphs.py"
    path.write_text(
        """
import torch
from torch.utils._pytree import register_pytree_node


class Data:
    def __init__(self, x, edges):
        self.x, self.edges = x, edges


register_pytree_node(Data, lambda d: ([d.x, d.edges], None), lambda found, _: Data(*found))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 10)

    def forward(self, data):
        y = self.linear(data.x)
        return torch.zeros_like(y).index_add(0, data.edges[1], y[data.edges[0]])


def make():
    return Net(), (Data(torch.randn(100, 64), torch.randint(0, 100, (2, 500))),)
"""
    )
    assert load_user_model(f"{path}:make").cost(100).parameters == 650


@torch_needed
def test_a_container_that_is_not_registered_is_refused_with_a_hint(tmp_path):
    path = tmp_path / "graphs.py"
    path.write_text(
        "import torch\n\n\nclass Data:\n    pass\n\n\ndef make():\n"
        "    return torch.nn.Linear(4, 4), (Data(),)\n"
    )
    with pytest.raises(
        InputError, match=r"the example inputs \(Data\) contain no tensor"
    ) as raised:
        load_user_model(f"{path}:make")
    assert "register_pytree_node" in raised.value.hint
