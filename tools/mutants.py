"""Mutants of Python source: one small error each, as an edit of the text.

The kinds follow the operators of DeMillo, Lipton and Sayward (1978): comparisons, arithmetic,
constants, minimum and maximum, conditions, returned values, order of arguments.
"""

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
}
_SYMMETRIC = {"differs", "same_shape", "hypot", "isclose", "add", "multiply"}
"""Functions whose first two arguments may change places."""
_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Mutant:
    """Replace ``source[start:end]`` by ``text``.

    ``function`` is the first line of the innermost function around it, 0 for code that runs at
    import.
    """

    kind: str
    line: int
    function: int
    start: int
    end: int
    text: str

    def applied(self, source: str) -> str:
        """The source with the error."""
        return source[: self.start] + self.text + source[self.end :]

    def diff(self, source: str, path: str) -> str:
        """Unified diff without context."""
        lines = difflib.unified_diff(
            source.splitlines(), self.applied(source).splitlines(), path, path, n=0, lineterm=""
        )
        return "\n".join(lines)


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module that still compiles."""
    return [mutant for mutant in _Finder(source).all_mutants() if _compiles(mutant.applied(source))]


class _Finder:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = ast.parse(source)
        self.line_starts = [0]
        for line in source.splitlines(keepends=True):
            self.line_starts.append(self.line_starts[-1] + len(line))

    def all_mutants(self) -> Iterator[Mutant]:
        yield from self._below(self.tree, 0)

    def _below(self, node: ast.AST, function: int) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            if _only_text(child):
                continue
            if isinstance(child, ast.FunctionDef):
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                yield from self._below_function(child, first)
                continue
            for kind, start, end, text in self._edits(child):
                yield Mutant(kind, self._line(start), function, start, end, text)
            yield from self._below(child, function)

    def _below_function(self, node: ast.FunctionDef, function: int) -> Iterator[Mutant]:
        # Annotations are not executed; defaults are, at import.
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                holder = ast.Expr(value=default)
                yield from self._below(holder, 0)
        for statement in node.body:
            yield from self._below(ast.Module(body=[statement], type_ignores=[]), function)

    def _edits(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        match node:
            case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
                yield from self._operator(
                    "comparison", node.left, node.comparators[0], *_COMPARISONS[type(operator)]
                )
            case ast.BinOp() if type(node.op) in _ARITHMETIC and not _joins_text(node):
                yield from self._operator(
                    "arithmetic", node.left, node.right, *_ARITHMETIC[type(node.op)]
                )
            case ast.UnaryOp(op=ast.USub()):
                start, end = self._span(node)
                yield "arithmetic", start, end, self._text(node.operand)
            case ast.Constant(value=bool() | int() | float() as value):
                yield "constant", *self._span(node), _other_constant(value)
            case ast.Call():
                yield from self._call(node)
            case ast.If() | ast.IfExp():
                yield self._negated(node.test)
            case ast.comprehension(ifs=[first, *_]):
                yield self._negated(first)
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield "dropped return", *self._span(value), "None"

    def _call(self, node: ast.Call) -> Iterator[tuple[str, int, int, str]]:
        match node.func:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _EXTREMES:
                end = self._span(node.func)[1]
                yield "min/max", end - len(name), end, _EXTREMES[name]
                return
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _SYMMETRIC:
                return
        match node.args:
            case [first, second, *_] if not any(isinstance(a, ast.Starred) for a in node.args[:2]):
                start, end = self._span(first)[0], self._span(second)[1]
                between = self.source[self._span(first)[1] : self._span(second)[0]]
                swapped = self._text(second) + between + self._text(first)
                if self._text(first) != self._text(second):
                    yield "swapped arguments", start, end, swapped

    def _operator(
        self, kind: str, left: ast.expr, right: ast.expr, old: str, new: str
    ) -> Iterator[tuple[str, int, int, str]]:
        begin, stop = self._span(left)[1], self._span(right)[0]
        between = self.source[begin:stop]
        if (at := between.find(old)) >= 0:
            yield kind, begin + at, begin + at + len(old), new

    def _negated(self, test: ast.expr) -> tuple[str, int, int, str]:
        return ("negated condition", *self._span(test), f"(not ({self._text(test)}))")

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.source[start:end]

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno, node.end_col_offset),
        )

    def _offset(self, line: int, column: int) -> int:
        """Position in characters; ``ast`` counts columns in UTF-8 bytes."""
        start = self.line_starts[line - 1]
        text = self.source[start : self.line_starts[line]].encode()
        return start + len(text[:column].decode())

    def _line(self, offset: int) -> int:
        return self.source.count("\n", 0, offset) + 1


def _only_text(node: ast.AST) -> bool:
    """Error messages, formatted text and annotations: no number of a user depends on them."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id
        in {
            *("TypeVar", "lru_cache", "dataclass", "field", "cast"),
        }
    )


def _joins_text(node: ast.BinOp) -> bool:
    parts = (node.left, node.right)
    return any(
        isinstance(part, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in parts
    )


def _other_constant(value: bool | int | float) -> str:
    match value:
        case bool():
            return str(not value)
        case int():
            return str(value + 1)
        case _:
            return repr(2 * value if value else 1.0)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True
