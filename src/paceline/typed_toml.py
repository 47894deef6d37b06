"""TOML tables as values of frozen dataclasses (`paceline.file_keys`), with all errors at once.

Plain Python instead of pydantic: every command reads packaged files through this module, and
importing pydantic takes 0.05 s of CPU, a seventh of a prediction.
"""

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

from paceline.errors import PacelineError
from paceline.file_errors import Problems
from paceline.file_keys import Key, bare, hints_of, is_mapping, keys_of, mark_of, shortened
from paceline.located_toml import TablePath, TomlTable
from paceline.naming import nearest

T = TypeVar("T")
Keys = Mapping[tuple[str, ...], str]
Reader = Callable[[Any, TablePath, Problems], Any]

_LARGEST = 1e300
_NOUNS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_EXAMPLES = {str: '"text"', int: "4", float: "2.5", bool: "true"}


def read_table(table: TomlTable, kind: type[T], problems: Problems, **own: Any) -> T | None:
    """The value of a table; None if it has errors, which are added to ``problems``.

    ``own`` are fields that the table does not contain, such as its name.
    """
    before = len(problems)
    found = _dataclass(kind, table.values, table.path, problems, own)
    return found if len(problems) == before else None


def read_file(root: TomlTable, kind: type[T], **own: Any) -> T:
    """The value of a file; raises one `FileError` with all errors."""
    problems = Problems(root)
    value = read_table(root, kind, problems, **own)
    problems.check()
    assert value is not None
    return value


def split_table(table: TomlTable, kind: type) -> tuple[TomlTable, TomlTable]:
    """The keys of a table that belong to a dataclass, and all others."""
    own = {parts[0] for parts in keys_of(kind)}
    first = {key: value for key, value in table.values.items() if key in own}
    others = {key: value for key, value in table.values.items() if key not in own}
    return dataclasses.replace(table, values=first), dataclasses.replace(table, values=others)


def tables_in(root: TomlTable, kind: str, problems: Problems) -> list[TomlTable]:
    """The tables ``[kind.NAME]`` of a file."""
    found = []
    with problems.at(kind):
        for name in root.table(kind).values:
            with problems.at(kind, name):
                found.append(root.table(kind).table(name))
    return found


def fields_in(
    values: Mapping[str, Any],
    keys: Keys,
    path: TablePath,
    problems: Problems,
    hints: Mapping[str, str],
) -> dict[str, tuple[TablePath, Any]]:
    """Path and value of each field in a table; a key of several parts is in a sub-table.

    Unknown keys are errors; ``hints`` has the hints for some of them.
    """
    found: dict[str, tuple[TablePath, Any]] = {}
    for key, value in values.items():
        here = (*path, key)
        if (key,) in keys:
            found[keys[(key,)]] = (here, value)
            continue
        inner = {parts[1:]: name for parts, name in keys.items() if parts[0] == key}
        if not inner:
            problems.add(here, *_unknown_key(key, keys, path, hints))
        elif isinstance(value, dict):
            found |= fields_in(value, inner, here, problems, hints)
        else:
            problems.add(here, *_not_a_table(here, value))
    return found


def nearest_key(key: str, keys: Keys) -> str | None:
    """The key that an unknown one most likely stands for: ``node_price`` for ``price``."""
    siblings = dict.fromkeys(parts[0] for parts in keys)
    near = [one for one in siblings if key in one.split("_")] or nearest(key, siblings, 1)
    return near[0] if near else None


def _unknown_key(
    key: str, keys: Keys, path: TablePath, hints: Mapping[str, str]
) -> tuple[str, str]:
    where = f" in [{'.'.join(map(str, path))}]" if path else ""
    near = nearest_key(key, keys)
    known = ", ".join(dict.fromkeys(parts[0] for parts in keys))
    hint = f"did you mean '{near}'?" if near else f"known: {known}"
    return f"unknown key '{key}'{where}", hints.get(key, hint)


def _not_a_table(path: TablePath, value: Any) -> tuple[str, str]:
    header = ".".join(map(str, path))
    return f"{path[-1]} must be a table, not {shortened(value)}", f"write [{header}] above its keys"


def _dataclass(
    kind: Any,
    values: Mapping[str, Any],
    path: TablePath,
    problems: Problems,
    own: Mapping[str, Any],
) -> Any:
    before = len(problems)
    keys, readers, required = _fields(kind)
    hints: Mapping[str, str] = getattr(kind, "KEY_HINTS", {})
    found = fields_in(values, keys, path, problems, hints)
    arguments = {name: readers[name](value, at, problems) for name, (at, value) in found.items()}
    missing = [key for key, name in required.items() if name not in arguments and name not in own]
    meant = {nearest_key(key, keys) for key in values if (key,) not in keys} if missing else ()
    for key in missing:
        if key not in meant:
            where = f" in [{'.'.join(map(str, path))}]" if path else ""
            problems.add(path, f"missing key '{key}'{where}", f"add {key} = ...")
    if len(problems) > before:
        return None
    try:
        return kind(**arguments, **own)
    except PacelineError as error:
        problems.add((*path, getattr(kind, "CHECKED_KEY", "")), error.message, error.hint)
        return None


@cache
def _fields(kind: Hashable) -> tuple[Keys, dict[str, Reader], dict[str, str]]:
    """Fields of a dataclass by key, their readers, and the required ones by key."""
    assert isinstance(kind, type)
    readers = {name: _reader(hint) for name, hint in hints_of(kind).items()}
    missing = dataclasses.MISSING
    required = {
        one.name
        for one in dataclasses.fields(kind)
        if one.default is missing and one.default_factory is missing
    }
    keys = keys_of(kind)
    return (
        keys,
        readers,
        {".".join(parts): name for parts, name in keys.items() if name in required},
    )


def _reader(hint: Any) -> Reader:
    """Conversion of a TOML value to the type of a field."""
    mark, kind = mark_of(hint), bare(hint)
    if mark.parse is not None:
        return _parsing(mark.parse)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _table_reader(
            lambda value, path, problems: _dataclass(kind, value, path, problems, {})
        )
    if is_mapping(kind):
        return _table_reader(_items(_reader(get_args(kind)[1]), mark.choices))
    origin = get_origin(kind)
    if origin in (tuple, frozenset):
        return _list_reader(origin, get_args(kind)[0])
    if isinstance(kind, type) and issubclass(kind, Enum):
        choice = _scalar(str, Key(choices=tuple(one.value for one in kind)))
        return lambda value, path, problems: (
            kind(value) if choice(value, path, problems) is not None else None
        )
    return _scalar(kind, mark) if kind in _NOUNS else lambda value, path, problems: value


def _parsing(parse: Callable[[Any], Any]) -> Reader:
    def read(value: Any, path: TablePath, problems: Problems) -> Any:
        try:
            return parse(value)
        except PacelineError as error:
            problems.add(path, f"{path[-1]}: {error.message}", error.hint)

    return read


def _table_reader(read_items: Reader) -> Reader:
    def read(value: Any, path: TablePath, problems: Problems) -> Any:
        if isinstance(value, dict):
            return read_items(value, path, problems)
        problems.add(path, *_not_a_table(path, value))
        return None

    return read


def _items(reader: Reader, names: tuple[str, ...]) -> Reader:
    """Values of a table by key; ``names`` are the valid keys, if limited."""
    known: Keys = {(name,): name for name in names}

    def read(value: Any, path: TablePath, problems: Problems) -> Any:
        if known:
            fields_in(value, known, path, problems, {})
        return {key: reader(one, (*path, key), problems) for key, one in value.items()}

    return read


def _list_reader(container: type, hint: Any) -> Reader:
    kind = bare(hint)
    noun = f"{_NOUNS[kind]}s" if kind in _NOUNS else "tables"
    item = _reader(hint)

    def read(value: Any, path: TablePath, problems: Problems) -> Any:
        right = isinstance(value, list) and (
            kind not in _NOUNS or all(_is_a(kind, one) for one in value)
        )
        if right:
            return container(item(one, (*path, at), problems) for at, one in enumerate(value))
        example = (
            f"write [{', '.join([_EXAMPLES[kind]] * 2)}]"
            if kind in _NOUNS
            else f"write [[{path[-1]}]]"
        )
        problems.add(path, f"{path[-1]} must be a list of {noun}, not {shortened(value)}", example)
        return None

    return read


def _is_a(kind: type, value: Any) -> bool:
    """Whether a TOML value has a type; an integer is a number, too, but NaN is not."""
    if kind is float:
        return type(value) in (int, float) and -_LARGEST < value < _LARGEST
    return type(value) is kind


def _scalar(kind: type, mark: Key) -> Reader:
    bounds = "" if mark.low is None else f" between {mark.low:,} and {mark.high:,}"
    noun, example = f"{'an' if kind is int else 'a'} {_NOUNS[kind]}{bounds}", _EXAMPLES[kind]

    def read(value: Any, path: TablePath, problems: Problems) -> Any:
        key = str(path[-1])
        right = _is_a(kind, value)
        if right and mark.low is not None and mark.high is not None:
            right = mark.low <= value <= mark.high
        if not right:
            message = f"{key} must be {noun}, not {shortened(value)}"
            problems.add(path, message, f"give {noun}" if bounds else f"write {key} = {example}")
        elif mark.choices and value not in mark.choices:
            hint = f"choose one of {', '.join(filter(None, mark.choices))}"
            problems.add(path, f"invalid {key} {shortened(value)}", hint)
        else:
            return value
        return None

    return read
