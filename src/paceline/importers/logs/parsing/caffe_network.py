"""The network definition echoed in a Caffe log, for the sizes of gradients."""

import re
from dataclasses import dataclass, field
from math import prod

BYTES_PER_PARAMETER = 4.0
MOST_LAYERS = 20_000

_FIELD = re.compile(r'^\s*(\w+): "?([\w./+-]{1,200})"?\s*$')
_TOP = re.compile(r"^(\S{1,200}) -> (\S{1,200})")
_BOTTOM = re.compile(r"^(\S{1,200}) <- (\S{1,200})")
_SETTING_UP = re.compile(r"^Setting up (\S{1,200})")
_SHAPE = re.compile(r"^Top shape: ((?:\d{1,9} )+)\(")


@dataclass
class _Layer:
    """Definition of a layer and, after its setup, its input and output blobs."""

    type: str = ""
    settings: dict[str, list[str]] = field(default_factory=dict)
    bottoms: list[str] = field(default_factory=list)
    tops: list[str] = field(default_factory=list)
    shaped: int = 0

    def number(self, name: str, default: int) -> int:
        """The first value of a setting as a number."""
        text = self.settings.get(name, [""])[0]
        return int(text) if text.isdecimal() and len(text) < 10 else default

    def switched_on(self, name: str) -> bool:
        """Whether a boolean setting is on (default: on)."""
        return self.settings.get(name, ["true"])[0] != "false"


class CaffeNetwork:
    """Reads the echoed definition and the setup messages of the first (training) net."""

    def __init__(self) -> None:
        self._layers: dict[str, _Layer] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._defined: _Layer | None = None
        self._being_set_up: _Layer | None = None
        self._depth = 0

    def definition_line(self, text: str) -> None:
        if text.rstrip().endswith("{"):
            self._depth += 1
            if self._depth == 1:
                self._defined = _Layer() if text.startswith("layer") else None
        elif text.strip() == "}":
            self._depth = max(0, self._depth - 1)
        elif self._defined is not None and (match := _FIELD.match(text)) is not None:
            self._setting(match[1], match[2])

    def message(self, text: str) -> None:
        if (match := _BOTTOM.match(text)) is not None:
            layer = self._known(match[1])
            if not layer.shaped and len(layer.bottoms) < 1000:
                layer.bottoms.append(match[2])
        elif (match := _TOP.match(text)) is not None:
            layer = self._known(match[1])
            if not layer.shaped and len(layer.tops) < 1000:
                layer.tops.append(match[2])
        elif (match := _SETTING_UP.match(text)) is not None:
            self._being_set_up = self._layers.get(match[1])
        elif (match := _SHAPE.match(text)) is not None and self._being_set_up is not None:
            layer = self._being_set_up
            if layer.shaped < len(layer.tops):
                shape = tuple(int(size) for size in match[1].split())
                self._shapes[layer.tops[layer.shaped]] = shape
                layer.shaped += 1

    def gradient_bytes(self) -> dict[str, float]:
        """Bytes of each layer's gradient, fp32, for layers whose parameters can be counted."""
        sizes: dict[str, float] = {}
        for name, layer in self._layers.items():
            parameters = self._parameters(layer)
            if parameters:
                sizes[name] = parameters * BYTES_PER_PARAMETER
        return sizes

    def _known(self, name: str) -> _Layer:
        """The layer called ``name``; added if missing, since Caffe inserts split layers."""
        if name not in self._layers and len(self._layers) < MOST_LAYERS:
            self._layers[name] = _Layer()
        return self._layers.get(name) or _Layer()

    def _setting(self, name: str, value: str) -> None:
        layer = self._defined
        if layer is None:
            return
        if name == "name" and self._depth == 1:
            if value in self._layers or len(self._layers) >= MOST_LAYERS:
                self._defined = None  # the test net repeats the names of the training net
            else:
                self._layers[value] = layer
        elif name == "type" and self._depth == 1:
            layer.type = value
        else:
            values = layer.settings.setdefault(name, [])
            if len(values) < 10:
                values.append(value)

    def _parameters(self, layer: _Layer) -> int:
        shape = self._shapes.get(layer.bottoms[0]) if layer.bottoms else None
        if shape is None or len(shape) < 2:
            return 0
        outputs = layer.number("num_output", 0)
        bias = outputs if layer.switched_on("bias_term") else 0
        if layer.type in ("Convolution", "Deconvolution"):
            height = layer.number("kernel_h", 0)
            width = layer.number("kernel_w", 0)
            side = layer.number("kernel_size", 1)
            groups = max(1, layer.number("group", 1))
            return outputs * (shape[1] // groups) * (height or side) * (width or side) + bias
        if layer.type == "InnerProduct":
            return outputs * prod(shape[1:]) + bias
        if layer.type == "Scale":
            return shape[1] * (2 if layer.settings.get("bias_term", ["false"])[0] == "true" else 1)
        return 0
