"""The colours stay apart for the common kinds of colour vision, on light and dark paper.

Dichromacy is simulated with the matrices of Machado, Oliveira and Fernandes (2009) at severity 1;
distances are Euclidean in CIELAB, where about 2 can just be told apart side by side.
"""

import itertools
import math
import re

import pytest

from paceline.render.html_page import package_text

SIMULATED = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
SERIES = [f"c{n}" for n in range(1, 9)]
PHASES = ["input", "copy", "forward", "backward", "communicate", "update", "wait", "other"]


def palettes():
    light, dark = package_text("figure.css").split("@media screen and (prefers-color-scheme: dark)")
    return {
        theme: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", css.split("\n}")[0]))
        for theme, css in (("light", light), ("dark", dark))
    }


def linear(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def seen(colour, matrix):
    rgb = linear(colour)
    return [min(1, max(0, sum(a * b for a, b in zip(row, rgb, strict=True)))) for row in matrix]


def lab(rgb):
    r, g, b = rgb
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("vision", SIMULATED)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("names", [SERIES, PHASES], ids=["series", "phases"])
def test_colours_are_distinguishable(names, theme, vision):
    colours = palettes()[theme]
    places = {name: lab(seen(colours[name], SIMULATED[vision])) for name in names}
    for (one, a), (two, b) in itertools.combinations(places.items(), 2):
        assert math.dist(a, b) > 15, f"{one} and {two} in {theme} with {vision} vision"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast(theme):
    colours = palettes()[theme]

    def luminance(name):
        r, g, b = linear(colours[name])
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for ink in ("text", "text-soft"):
        low, high = sorted((luminance(ink), luminance("line")))
        assert (high + 0.05) / (low + 0.05) >= 4.5
