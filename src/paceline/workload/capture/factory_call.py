"""The part after the colon of ``file.py:NAME``: a name or a call with arguments."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paceline.errors import InputError

_EXAMPLE = "such as 'model.py:UNet(3, classes=2)' or 'model.py:GPT(GPTConfig(n_layer=2))', quoted"
_HINT = f"write a name or a call, {_EXAMPLE}"


@dataclass(frozen=True)
class FactoryCall:
    """A name in the user's file, or a call of it with arguments."""

    name: str
    call: ast.Call | None = None

    def value(self, find: Callable[[str], Any]) -> Any:
        """The result of the call or the value of the name; ``find`` looks up names."""
        return find(self.name) if self.call is None else _value(self.call, find)


def parse_factory_call(text: str) -> FactoryCall:
    """Parse a name or a call; raise `InputError` for any other expression."""
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"'{text}' is neither a name nor a call", _HINT) from None
    if isinstance(body, ast.Name):
        return FactoryCall(body.id)
    if isinstance(body, ast.Call) and isinstance(body.func, ast.Name):
        return FactoryCall(body.func.id, body)
    raise InputError(f"'{text}' is neither a name nor a call", _HINT)


def _value(node: ast.expr, find: Callable[[str], Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return find(name)
        case ast.Attribute(value=owner, attr=attribute):
            return getattr(_value(owner, find), attribute)
        case ast.Call(func=called, args=arguments, keywords=keywords):
            named = {
                keyword.arg: _value(keyword.value, find) for keyword in keywords if keyword.arg
            }
            return _value(called, find)(
                *(_value(argument, find) for argument in arguments), **named
            )
        case ast.List(elts=parts):
            return [_value(part, find) for part in parts]
        case ast.Tuple(elts=parts):
            return tuple(_value(part, find) for part in parts)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise InputError(
            f"'{ast.unparse(node)}' is not a literal, a name or a call",
            f"use numbers, strings and calls, {_EXAMPLE}",
        ) from None
