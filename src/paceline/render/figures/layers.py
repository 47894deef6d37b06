"""Sizes of the gradients of layers, and the messages that carry them."""

from dataclasses import dataclass, replace

from paceline.render.number_format import short_bytes
from paceline.render.svg.axis import Tick, linear_axis
from paceline.render.svg.element import document, element, group, text
from paceline.render.svg.legend import LegendEntry, legend
from paceline.render.svg.marks import bar
from paceline.render.svg.panel import horizontal_grid
from paceline.render.svg.scale import BandScale, Scale
from paceline.render.svg.text_metrics import text_width
from paceline.render.svg.ticks import finite
from paceline.units import format_bytes, plural

_STRIP = 34.0


@dataclass(frozen=True, slots=True)
class LayerSize:
    """A layer with the bytes of its gradient."""

    name: str
    gradient_bytes: float


@dataclass(frozen=True, slots=True)
class MessageSize:
    """A message that carries the layers ``first`` to ``last`` (indices, inclusive)."""

    size_bytes: float
    first: int
    last: int


@dataclass(frozen=True)
class LayersInfo:
    """Layers in the order in which their gradients are ready, and the messages if known."""

    layers: tuple[LayerSize, ...]
    messages: tuple[MessageSize, ...] = ()
    order: str = "layers, in the order of the backward pass"

    @property
    def sizes(self) -> list[float]:
        """Sizes that can be drawn."""
        known = [layer.gradient_bytes for layer in self.layers]
        return [size for size in finite(known) if size > 0]


def draw(info: LayersInfo, width: float, height: float) -> str:
    plain = linear_axis("gradient of a layer", info.sizes)
    axis = replace(plain, ticks=tuple(Tick(t.value, short_bytes(t.value)) for t in plain.ticks))
    entries = [LegendEntry("layer", "c1"), LegendEntry("message and its layers", "c2")]
    key, key_height = legend(entries if info.messages else [], 0, width, 0)
    left, right, bottom = axis.label_width + 12, width - 12, height - 26
    top = key_height + 30 + (_STRIP if info.messages else 0)
    bands = BandScale(len(info.layers), left, right, 0.15)
    y = axis.scale(bottom, top)
    below = text(info.order, right, bottom + 18, class_="axis-title", anchor="end")
    parts = [
        key,
        text(axis.title, 0, key_height + 14, class_="axis-title"),
        horizontal_grid(axis, y, left, right),
        _layers(info, bands, y, bottom),
        _messages(info, bands, top - _STRIP + 4),
        element("line", x1=left, y1=bottom, x2=right, y2=bottom, class_="base"),
        below,
    ]
    total = format_bytes(sum(info.sizes))
    description = (
        f"{plural(len(info.layers), 'layer')}, {total}, in {plural(len(info.messages), 'message')}."
    )
    return document(width, height, "Sizes of layers and messages", description, *parts)


def _layers(info: LayersInfo, bands: BandScale, y: Scale, bottom: float) -> str:
    bars = [
        bar(
            bands.edge(index),
            y(layer.gradient_bytes),
            max(bands.width, 0.5),
            bottom - y(layer.gradient_bytes),
            tip=f"{layer.name}\n{format_bytes(layer.gradient_bytes)}",
        )
        for index, layer in enumerate(info.layers)
        if finite([layer.gradient_bytes]) and layer.gradient_bytes > 0
    ]
    return group(*bars, class_="c1")


def _messages(info: LayersInfo, bands: BandScale, top: float) -> str:
    parts: list[str] = []
    count = len(info.layers)
    for message in info.messages:
        if not (0 <= message.first <= message.last < count and finite([message.size_bytes])):
            continue
        left = bands.edge(message.first)
        right = max(bands.edge(message.last) + bands.width, left + 1)
        size = format_bytes(message.size_bytes)
        tip = f"message of {size}\n{plural(message.last - message.first + 1, 'layer')}"
        parts.append(bar(left, top + 14, right - left, 8, tip=tip))
        if text_width(size, 11) <= right - left:
            parts.append(text(size, left, top + 9, class_="small"))
    return group(*parts, class_="c2 outlined")
