"""The style of figures, applied without a browser: the few words of CSS that `figure.css` uses."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from paceline.report.page import package_text

Style = Mapping[str, str]

_BLOCK = re.compile(r"([^{}]+)\{([^{}]*)\}")
_MEDIA = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_VARIABLE = re.compile(r"var\((--[\w-]+)\)")


@dataclass(frozen=True)
class StyledNode:
    """An element as selectors see it."""

    tag: str
    classes: frozenset[str]


@dataclass(frozen=True)
class StyleRule:
    """Descendants of one another, the last of which gets ``words``; ``weight`` is how exact."""

    selector: tuple[StyledNode, ...]
    weight: int
    words: Style

    def holds(self, path: Sequence[StyledNode]) -> bool:
        """Whether it holds for the last element of ``path``, from the outermost one in."""
        if not path or not _is(self.selector[-1], path[-1]):
            return False
        wanted = list(self.selector[:-1])
        for node in reversed(path[:-1]):
            if wanted and _is(wanted[-1], node):
                wanted.pop()
        return not wanted


def style_of(path: Sequence[StyledNode], inherited: Style) -> dict[str, str]:
    """All that holds for an element in light colours, with what its parent passes on."""
    own = dict(inherited)
    for rule in figure_rules():
        if rule.holds(path):
            own |= rule.words
    return own


def value_of(style: Style, name: str, otherwise: str) -> str:
    """A property with its variables put in."""
    value = style.get(name, otherwise)
    while found := _VARIABLE.search(value):
        value = value.replace(found[0], style.get(found[1], "#000000"))
    return value


@cache
def figure_rules() -> tuple[StyleRule, ...]:
    """Rules of figures on light paper, the more exact ones later."""
    text = _MEDIA.sub("", package_text("figure.css"))
    rules = []
    for selectors, body in _BLOCK.findall(text):
        words = dict(_declarations(body))
        for selector in selectors.split(","):
            nodes = tuple(map(_node, selector.split()))
            weight = sum(10 * len(node.classes) + bool(node.tag) for node in nodes)
            rules.append(StyleRule(nodes, weight, words))
    return tuple(sorted(rules, key=lambda rule: rule.weight))


def _declarations(body: str) -> list[tuple[str, str]]:
    pairs = (part.split(":", 1) for part in body.split(";") if ":" in part)
    return [(name.strip(), value.strip()) for name, value in pairs]


def _node(selector: str) -> StyledNode:
    if "[" in selector or ":" in selector:
        return StyledNode("nothing", frozenset())
    tag, *classes = selector.split(".")
    return StyledNode(tag, frozenset(classes))


def _is(wanted: StyledNode, node: StyledNode) -> bool:
    return wanted.tag in ("", node.tag) and wanted.classes <= node.classes
