"""Signatures and docstrings of functions whose keywords are declared knobs."""

import inspect
from collections.abc import Callable
from typing import Any, ForwardRef, TypeVar, get_args

from paceline.spec.knob import knobs_of

F = TypeVar("F", bound=Callable[..., Any])


def with_keywords(spec: type) -> Callable[[F], F]:
    """Add the knobs of ``spec`` to the signature and docstring of a function.

    Type checkers read ``**options: Unpack[spec]``; `inspect.signature` and `help` read this.
    """

    def decorated(function: F) -> F:
        plain = inspect.signature(function)
        parameters = [one for one in plain.parameters.values() if one.kind is not one.VAR_KEYWORD]
        taken = {one.name for one in parameters}
        keywords = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_plain(annotation)
            )
            for name, annotation in spec.__annotations__.items()
            if name not in taken
        ]
        function.__signature__ = plain.replace(parameters=[*parameters, *keywords])  # type: ignore[attr-defined]
        function.__annotations__ |= {one.name: one.annotation for one in keywords}
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = f"{text}\n\n{keywords_text(spec, without=taken)}\n"
        return function

    return decorated


def keywords_text(spec: type, without: set[str]) -> str:
    """The knobs by group, one line each."""
    groups: dict[str, list[str]] = {}
    for name, knob in knobs_of(spec).items():
        if name not in without:
            groups.setdefault(knob.knob.group, []).append(f"    {name}: {knob.knob.text}")
    return "\n\n".join("\n".join([f"{group}:", *lines]) for group, lines in groups.items())


def _plain(annotation: Any) -> Any:
    """The type of an annotation, without its knob."""
    found = get_args(annotation)[0]
    return found.__forward_arg__ if isinstance(found, ForwardRef) else found
