"""Framework profiles: overlap policy, fusion, input pipeline, overheads, each with its source."""

from functools import lru_cache
from importlib import resources
from pathlib import Path

from paceline.located_toml import read_toml
from paceline.naming import unknown_name
from paceline.predictor.framework import Framework
from paceline.predictor.framework_file import read_frameworks

__all__ = ["Framework", "framework", "framework_names"]


def framework(name: str | Framework) -> Framework:
    """The profile called ``name``, or so by others (``pytorch_ddp``, ``mxnet_kvstore``).

    ``mine.toml:name`` is a profile of one's own, which may be ``like`` one that comes with the
    package.
    """
    if isinstance(name, Framework):
        return name
    path, separator, own_name = name.rpartition(":")
    if separator and path.endswith(".toml"):
        return _find(own_name, _own_profiles(Path(path)))
    return _find(name, _profiles())


def framework_names() -> list[str]:
    """Every profile."""
    return list(_profiles())


def _find(name: str, profiles: dict[str, Framework]) -> Framework:
    spellings: dict[str, Framework] = {}
    for profile in profiles.values():
        spellings |= {_fold(alias): profile for alias in profile.aliases}
    spellings |= {_fold(own): profile for own, profile in profiles.items()}
    if _fold(name) not in spellings:
        hint = f"one of {', '.join(profiles)}"
        raise unknown_name("framework", name, spellings, hint)
    return spellings[_fold(name)]


def _fold(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def _shipped_text() -> str:
    path = resources.files("paceline") / "data" / "frameworks" / "profiles.toml"
    return path.read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _profiles() -> dict[str, Framework]:
    return read_frameworks(_shipped_text(), "profiles.toml")


def _own_profiles(path: Path) -> dict[str, Framework]:
    return read_frameworks(read_toml(path).text, str(path), _shipped_text())
