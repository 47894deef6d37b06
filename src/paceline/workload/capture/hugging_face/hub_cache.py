"""Configurations of models in the local cache of the Hugging Face hub; nothing is downloaded."""

import os
from pathlib import Path

from paceline.errors import InputError


def cached_config(name: str) -> Path:
    """``config.json`` of the model ``ORGANISATION/NAME`` in the cache."""
    folder = cache_folder() / f"models--{name.replace('/', '--')}"
    snapshots = folder / "snapshots"
    found = sorted(snapshots.glob("*/config.json"), key=lambda path: path.stat().st_mtime)
    reference = folder / "refs" / "main"
    if reference.is_file():
        current = snapshots / reference.read_text(encoding="utf-8").strip() / "config.json"
        found += [current] if current.is_file() else []
    if not found:
        raise InputError(
            f"'{name}' is neither a built-in network nor a file, and not in the hub cache "
            f"{cache_folder()}",
            f"run 'hf download {name} config.json', or give its config.json",
        )
    return found[-1]


def cache_folder() -> Path:
    """The cache as huggingface_hub finds it: HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, home."""
    if given := os.environ.get("HF_HUB_CACHE"):
        return Path(given).expanduser()
    general = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"
    return Path(os.environ.get("HF_HOME", general)).expanduser() / "hub"
