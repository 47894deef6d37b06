"""Checks of this machine: available features, and remedies for missing ones."""

import importlib.util
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import EnvironmentUnusableError, PacelineError
from paceline.frameworks.command import interpreter
from paceline.frameworks.framework_registry import frameworks
from paceline.hardware.catalogue import packaged
from paceline.importers.logs import readers
from paceline.launch.launcher_registry import launchers, our_launchers
from paceline.measurement.environment import load_average, machine_fingerprint
from paceline.plugins import PluginError, PluginKind, installed_plugins, why_unusable
from paceline.predictor.comm.library import libraries
from paceline.store import default_store_path
from paceline.workload.zoo.zoo_registry import entries

QUIET_LOAD_PER_CORE = 0.25
ENOUGH_FREE_BYTES = 1e9
EXTRAS = {
    "onnx": ("read ONNX models", "pip install 'paceline[onnx]'"),
    "sklearn": ("train on the digits data set of scikit-learn", "pip install 'paceline[digits]'"),
    "pyarrow": ("export Parquet", "pip install 'paceline[parquet]'"),
}
TOOLS = {
    "nvidia-smi": ("run scripts on NVIDIA GPUs", "install the NVIDIA driver"),
}
Registry = Callable[[], object]
REGISTRIES: Mapping[PluginKind, Registry] = {
    PluginKind.FRAMEWORK: frameworks,
    PluginKind.LAUNCHER: launchers,
    PluginKind.READER: readers,
    PluginKind.HARDWARE: packaged,
    PluginKind.NETWORK: entries,
    PluginKind.COLLECTIVE: libraries,
}
"""Function that builds the registry of each kind of plugin and rejects invalid ones."""


@dataclass(frozen=True)
class Finding:
    """One feature that works here or not, with a ``remedy``."""

    name: str
    works: bool
    detail: str
    remedy: str = ""


def examine(more_registries: Mapping[PluginKind, Registry]) -> list[Finding]:
    """Check every feature of Paceline on this machine.

    ``more_registries`` are those of packages above this one: figures.
    """
    return [
        _machine(),
        _quiet(),
        _disk(),
        *_frameworks(),
        *_launchers(),
        *_extras(),
        *_plugins({**REGISTRIES, **more_registries}),
    ]


def _machine() -> Finding:
    return Finding("machine", True, machine_fingerprint())


def _quiet() -> Finding:
    cores = os.cpu_count() or 1
    load = load_average()
    quiet = load <= QUIET_LOAD_PER_CORE * cores
    remedy = "" if quiet else "stop other programs before measuring"
    return Finding("idle enough to measure", quiet, f"load average {load:.1f}", remedy)


def _disk() -> Finding:
    directory = default_store_path().parent
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    free = shutil.disk_usage(directory).free
    writable = os.access(directory, os.W_OK) and free > ENOUGH_FREE_BYTES
    remedy = "" if writable else "set PACELINE_STORE to a path on a writable disk with 1 GB free"
    return Finding("disk space for results", writable, f"{free / 1e9:.0f} GB free", remedy)


def _frameworks() -> list[Finding]:
    findings = []
    try:
        known = frameworks()
    except PacelineError as error:
        return [Finding("train with frameworks", False, error.message, error.hint)]
    for framework in known.values():
        try:
            path = interpreter(framework)
        except EnvironmentUnusableError as error:
            findings.append(Finding(f"train with {framework.name}", False, "", error.hint))
        else:
            findings.append(Finding(f"train with {framework.name}", True, Path(path).name))
    return findings


def _launchers() -> list[Finding]:
    """Detection result of each launcher; only built-in ones if a plugin cannot be loaded."""
    try:
        known = launchers()
    except PluginError:
        known = our_launchers()
    return [
        Finding(f"launch with {name}", found.works, found.found, found.remedy)
        for name, found in ((name, one.detect()) for name, one in known.items())
    ]


def _plugins(registries: Mapping[PluginKind, Registry]) -> list[Finding]:
    findings = []
    for plugin in installed_plugins():
        why = why_unusable(plugin, registries[plugin.kind])
        findings.append(
            Finding(
                f"{plugin.kind.name.lower()} '{plugin.name}' (plugin)",
                not why,
                f"{plugin.package}: {why or plugin.target}",
                f"fix or uninstall {plugin.package}" if why else "",
            )
        )
    return findings


def _extras() -> list[Finding]:
    found = {name: importlib.util.find_spec(name) is not None for name in EXTRAS}
    found |= {name: shutil.which(name) is not None for name in TOOLS}
    return [
        Finding(purpose, found[name], name if found[name] else "", "" if found[name] else remedy)
        for name, (purpose, remedy) in {**EXTRAS, **TOOLS}.items()
    ]
