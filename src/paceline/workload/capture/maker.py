"""What a user writes behind the colon of ``file.py:``, a name or a call with its arguments."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paceline.errors import InputError

_EXAMPLE = "as in 'model.py:UNet(3, classes=2)' or 'model.py:GPT(GPTConfig(n_layer=2))', quoted"


@dataclass(frozen=True)
class Maker:
    """A name in the user's file and, where arguments were given, the call of it."""

    name: str
    call: ast.Call | None = None

    def value(self, find: Callable[[str], Any]) -> Any:
        """What the call returns, or what the name stands for; ``find`` looks names up."""
        return find(self.name) if self.call is None else _value(self.call, find)


def parse_maker(text: str) -> Maker:
    """The name or call that ``text`` is; raises `InputError` for anything else."""
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"'{text}' is neither a name nor a call", _EXAMPLE) from None
    if isinstance(body, ast.Name):
        return Maker(body.id)
    if isinstance(body, ast.Call) and isinstance(body.func, ast.Name):
        return Maker(body.func.id, body)
    raise InputError(f"'{text}' is neither a name nor a call", _EXAMPLE)


def _value(node: ast.expr, find: Callable[[str], Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return find(name)
        case ast.Attribute(value=owner, attr=attribute):
            return getattr(_value(owner, find), attribute)
        case ast.Call(func=called, args=arguments, keywords=keywords):
            named = {one.arg: _value(one.value, find) for one in keywords if one.arg}
            return _value(called, find)(*(_value(one, find) for one in arguments), **named)
        case ast.List(elts=parts):
            return [_value(part, find) for part in parts]
        case ast.Tuple(elts=parts):
            return tuple(_value(part, find) for part in parts)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise InputError(
            f"'{ast.unparse(node)}' is no plain value", f"give numbers, texts and calls, {_EXAMPLE}"
        ) from None
