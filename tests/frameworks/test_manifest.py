"""Contents of manifests, and errors with file and line."""

from dataclasses import replace

import pytest

from paceline.errors import InputError, PacelineError
from paceline.frameworks import framework_registry as registry
from paceline.frameworks.command import search_path
from paceline.frameworks.framework_registry import STATUSES, read_manifest
from paceline.frameworks.operations import COMMON_OPERATIONS
from paceline.importers.logs.parsing.log_registry import readers
from paceline.measurement.job import INSTRUMENTS
from paceline.plugins import Plugin
from paceline.predictor.framework_profiles import framework as profile

MINE = """\
status = "maintained"

[environment.mine]
module = "mine"
disk = "1GB"
newest_python = "3.12"

[framework.mine]
worker = "mine_worker.py"
environment = "mine"
operations = "common"
variables = { MINE = "1" }

[profile.mine]
inherits = "torch-ddp"
title = "Mine"
"""


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "mine"
    made.mkdir()
    made.joinpath("manifest.toml").write_text(MINE)
    made.joinpath("mine_worker.py").touch()
    made.joinpath("requirements.txt").write_text("mine==1.0\n")
    return made


@pytest.fixture
def plugins(monkeypatch):
    """What entry points of installed packages give, by name."""
    given = {}

    def forget():
        for part in ("manifests", "frameworks", "environments", "profiles", "recipes"):
            getattr(registry, part).cache_clear()

    def registered(kind):
        return [(Plugin(kind, name, "t", "a-package"), value) for name, value in given.items()]

    monkeypatch.setattr(registry, "plugins", registered)
    monkeypatch.setattr(registry, "with_plugins", lambda kind, own, expected: {**own, **given})
    forget()
    yield given
    monkeypatch.undo()
    forget()


def test_a_folder_brings_frameworks_environments_and_profiles(folder):
    manifest = read_manifest(folder)
    mine = manifest.adapters["mine"]
    assert (manifest.name, mine.worker) == ("mine", folder / "mine_worker.py")
    assert (mine.module, mine.profile, mine.operations) == ("mine", "mine", COMMON_OPERATIONS)
    assert mine.interpreter_variable == "PACELINE_MINE_PYTHON"
    assert mine.install == "paceline frameworks install mine"
    spec = manifest.environments["mine"]
    assert (spec.newest_python, spec.disk_bytes) == ((3, 12), 1e9)
    assert [step.requirements for step in spec.steps] == [folder / "requirements.txt"]
    assert manifest.profiles["mine"].values["inherits"] == "torch-ddp"


@pytest.mark.parametrize(
    ("change", "line", "message", "hint"),
    [
        (('"maintained"', '"alive"'), 1, "invalid status 'alive'", "legacy"),
        (('status = "maintained"\n', ""), None, "missing key 'status'", "status ="),
        (("operations", "operation"), 11, "unknown key 'operation'", "'operations'"),
        (('"common"', '"some"'), 11, "invalid operations 'some'", '"all", "common"'),
        (("mine_worker.py", "other.py"), 9, "does not exist", "folder of the manifest"),
        (('environment = "mine"', 'environment = "ours"'), 10, "no [environment.ours]", "add it"),
        (('environment = "mine"\n', ""), 8, "missing key 'module' in [framework.mine]", "module"),
        (('"1GB"', '"much"'), 5, "disk: 'much' is not a size", "MiB"),
        (('"3.12"', '"new"'), 6, "invalid version 'new'", '"3.11"'),
        (("[profile.mine]", "[profil.mine]"), 14, "unknown key 'profil'", "'profile'"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_line(folder, change, line, message, hint):
    assert change[0] in MINE
    folder.joinpath("manifest.toml").write_text(MINE.replace(*change, 1))
    with pytest.raises(InputError) as caught:
        read_manifest(folder)
    assert "manifest.toml" in caught.value.message
    assert line is None or f"line {line}:" in caught.value.message
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_every_framework_has_a_predictor_profile():
    for manifest in registry.manifests().values():
        for one in manifest.adapters.values():
            assert profile(one.profile).policy
            assert profile(one.name).policy


def test_every_manifest_is_in_order():
    for one in registry.manifests().values():
        assert one.status in STATUSES
        assert bool(one.adapters) == (one.status != "external")
        assert (one.status == "legacy") == (one.folder.parent.name == "legacy")
        for adapter in one.adapters.values():
            assert set(adapter.instruments) <= set(INSTRUMENTS)
            assert set(adapter.uses) <= set(registry.manifests())
        for recipe in one.recipes.values():
            assert recipe.reader in readers()


@pytest.mark.parametrize("form", ["folder", "text", "manifest"])
def test_an_entry_point_gives_a_folder_or_a_manifest(folder, plugins, form):
    plugins["mine"] = {
        "folder": folder,
        "text": str(folder),
        "manifest": read_manifest(folder),
    }[form]
    assert registry.framework("mine").worker == folder / "mine_worker.py"
    assert registry.environments_of(["mine"])[0].module == "mine"


def test_an_entry_point_of_anything_else_is_refused(plugins):
    plugins["mine"] = 7
    with pytest.raises(PacelineError, match="7 is neither a package nor a folder"):
        registry.manifests()


def test_a_name_that_two_folders_bring_is_refused(folder, plugins):
    folder.joinpath("manifest.toml").write_text(MINE.replace("[framework.mine]", "[framework.jax]"))
    plugins["mine"] = folder
    with pytest.raises(InputError, match=r"duplicate framework 'jax' in .*jax and .*mine"):
        registry.frameworks()


def test_a_family_that_is_not_there_is_named(folder):
    wanted = replace(read_manifest(folder).adapters["mine"], uses=("tensorflo",))
    with pytest.raises(
        PacelineError, match=r"no family named 'tensorflo'. Did you mean tensorflow"
    ):
        search_path(wanted)
