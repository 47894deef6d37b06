"""What packages of third parties add by entry points, used by the real command."""

import importlib.metadata
import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from plugin_packages import PACKAGES, install

from paceline import plugins
from paceline.importers.logs import LogReader
from paceline.launch.launcher_registry import BUILT_IN
from paceline.plugins import PluginError, PluginKind, with_plugins
from paceline.store import Status, Store, default_store_path
from paceline.testing.launcher_suite import CHECKS


@pytest.fixture
def command(tmp_path):
    """Run ``paceline``, or Python code, with some packages of the fixtures installed."""

    def run(packages, *words, code=None):
        start = ["-c", code] if code else ["-m", "paceline"]
        return subprocess.run(
            [sys.executable, *start, *map(str, words)],
            env=install(tmp_path / "site", *packages),
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


@pytest.fixture
def registered(monkeypatch):
    """Entry points of readers as if packages had registered them."""

    def register(*points):
        found = [EntryPoint(name, value, PluginKind.READER.value) for name, value in points]
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found)
        monkeypatch.setattr(plugins, "_may_register", lambda folder: True)

    plugins.plugins.cache_clear()
    yield register
    plugins.plugins.cache_clear()


@pytest.mark.parametrize(
    ("points", "why"),
    [
        ([("caffe", "json:loads")], "name is already in use"),
        ([("CAFFE", "json:loads")], "name is already in use"),
        ([("other", "json:loads")], "object of type Path"),
        ([("other", "pathlib:nothing")], "AttributeError"),
        ([("other", "no_such_module")], "No module named 'no_such_module'"),
        ([("one", "json:loads"), ("one", "json:loads")], "another package registers the same name"),
    ],
)
def test_a_plugin_that_does_not_fit_is_refused_with_its_package(registered, points, why):
    registered(*points)
    with pytest.raises(PluginError, match=why) as refused:
        with_plugins(PluginKind.READER, {"caffe": Path()}, Path, str.lower)
    assert f"the reader '{points[0][0]}' of package unknown" in refused.value.message
    assert "uninstall" in refused.value.hint


def test_a_plugin_goes_by_the_name_of_its_entry_point(registered):
    registered(("caffe", "paceline.importers.logs.caffe:READER"))
    assert list(with_plugins(PluginKind.READER, {}, LogReader)) == ["caffe"]
    registered(("other", "paceline.importers.logs.caffe:READER"))
    plugins.plugins.cache_clear()
    with pytest.raises(PluginError, match="its own name is 'caffe'"):
        with_plugins(PluginKind.READER, {}, LogReader)


@pytest.mark.parametrize("name", ["nice_launcher", "tally_reader"])
def test_a_launcher_or_a_reader_is_at_most_sixty_lines(name):
    lines = [line for file in (PACKAGES / name).iterdir() for line in file.open()]
    assert len(lines) <= 60


@pytest.mark.slow
@pytest.mark.torch
def test_a_package_s_launcher_runs_a_network(command):
    answer = command(
        ["nice_launcher"], "measure", "--launcher", "nice", "--model", "fcn5", "--batch", 2,
        "-j", "1x2", "--launches", 1, "--steps", 2, "--warmup-steps", 1, "--study", "s",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    with Store(default_store_path()) as store:
        (launch,) = store.launches("s")
    assert (launch.status, launch.environment["launcher"]) == (Status.FINISHED, "nice")
    assert launch.job["launcher"] == "nice"


def test_a_package_s_launcher_keeps_the_contract(command):
    code = (
        "from paceline.launch import launcher\n"
        "from paceline.testing.launcher_suite import run_suite\n"
        "for r in run_suite(launcher('nice')): print(r.check, r.passed, r.message, sep='|')\n"
    )
    answer = command(["nice_launcher"], code=code)
    results = [line.split("|") for line in answer.stdout.splitlines()]
    assert len(results) == len(CHECKS), answer.stderr
    assert [result for result in results if result[1] != "True"] == []


def test_more_nodes_than_a_package_s_launcher_knows_are_refused(command):
    answer = command(
        ["nice_launcher"], "measure", "--model", "fcn5", "--launcher", "nice", "-j", "2x1"
    )
    assert answer.returncode == 2
    assert "cannot start 2 nodes: the launcher 'nice' has 1 host" in answer.stderr
    assert "-j 1xN" in answer.stderr


def test_a_package_s_reader_reads_a_log(command, tmp_path):
    log = tmp_path / "theirs.log"
    steps = "".join(f"tally: step {step} took 0.5 s\n" for step in range(10))
    log.write_text(f"tally: batch 32\n{steps}")
    answer = command(["tally_reader"], "import", log, "--json")
    assert answer.returncode == 0, answer.stderr
    with Store(default_store_path()) as store:
        (launch,) = store.launches()
    assert launch.framework == "tally"
    assert launch.outcome.ranks[0].wall_seconds[0] == 0.5


def test_a_package_s_device_is_in_the_catalogue(command):
    answer = command(["acme_parts"], "catalog", "devices", "acme-one", "--json")
    assert answer.returncode == 0, answer.stderr
    assert "Acme" in answer.stdout


def test_a_package_s_network_is_in_the_zoo(command):
    answer = command(["acme_parts"], "inspect", "acme-net", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["parameters"] == 16 * 8 + 8 + 8 * 2 + 2


def test_a_package_s_collective_is_used_by_its_library(command):
    code = (
        "from paceline.predictor.comm.rank_group import Group\n"
        "from paceline.predictor.comm.library import library\n"
        "print([variant.name for variant in library('acme-ccl').variants])\n"
        "counts = library('acme-ccl').variants[0].counts(Group(4, 1))\n"
        "print(counts.inner_volume)\n"
        "print(counts.inner_messages + counts.outer_messages)\n"
    )
    answer = command(["acme_parts"], code=code)
    assert answer.stdout.splitlines() == ["['star']", "6.0", "2.0"], answer.stderr


def test_a_package_s_figure_is_drawn(command):
    code = (
        "from acme_parts import DialInfo\n"
        "from paceline.render.figures import draw, figure\n"
        "print(draw(DialInfo(0.5), 200.0)); print(figure('A dial', DialInfo(1.0)).title)\n"
    )
    answer = command(["acme_parts"], code=code)
    assert '<rect width="100.0"' in answer.stdout, answer.stderr
    assert "A dial" in answer.stdout


def test_doctor_lists_plugins_and_says_which_are_broken(command):
    answer = command(["nice_launcher", "acme_parts", "broken_parts"], "doctor", "--json")
    assert answer.returncode == 0, answer.stderr
    findings = {one["name"]: one for one in json.loads(answer.stdout)["findings"]}
    assert findings["network 'acme_net' (plugin)"]["works"]
    assert findings["launcher 'nice' (plugin)"]["detail"] == "nice-launcher: nice_launcher:LAUNCHER"
    for name, why in {
        "framework 'torch'": "name is already in use",
        "launcher 'absent'": "No module named 'no_such_module'",
        "reader 'caffe'": "name is already in use",
        "network 'ResNet-50'": "name is already in use",
        "hardware 'nothing'": "lab.toml was left at home",
        "collective 'number'": "expected the path of a file, got 7",
        "figure 'dial'": "another package registers the same name",
    }.items():
        finding = findings[f"{name} (plugin)"]
        assert not finding["works"]
        assert why in finding["detail"]
        assert finding["remedy"] == "fix or uninstall broken-parts"
    assert findings["launch with local"]["works"]
    assert "the framework 'torch'" in findings["train with frameworks"]["detail"]


def test_a_broken_plugin_stops_only_what_needs_it(command):
    assert command(["broken_parts"], "--help").returncode == 0
    assert command(["broken_parts"], "catalog", "publications", "--help").returncode == 0
    answer = command(["broken_parts"], "inspect", "fcn5")
    assert answer.returncode == 2
    assert "the network 'ResNet-50' of package broken-parts cannot be used" in answer.stderr
    assert "uninstall broken-parts" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_doctor_claims_no_launcher_that_does_not_exist(tmp_path):
    (tmp_path / "sbatch").touch(mode=0o755)
    environment = install(tmp_path / "site")
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    words = [sys.executable, "-m", "paceline", "doctor", "--json"]
    answer = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    names = {finding["name"] for finding in json.loads(answer.stdout)["findings"]}
    launching = {name for name in names if name.startswith("launch with")}
    assert launching == {f"launch with {name}" for name in BUILT_IN}


def test_only_folders_that_name_a_group_are_searched_for_plugins(tmp_path):
    empty, other, ours, egg = (tmp_path / name for name in ("empty", "other", "ours", "egg"))
    for folder in (empty, other / "x.dist-info", ours / "y-1.dist-info", egg / "z.egg"):
        folder.mkdir(parents=True)
    command = "[console_scripts]\npaceline = paceline.cli.main:main\n"
    (other / "x.dist-info" / "entry_points.txt").write_text(command)
    points = f"{command}[paceline.readers]\nmine = mine:READER\n"
    (ours / "y-1.dist-info" / "entry_points.txt").write_text(points)
    archive = tmp_path / "modules.zip"
    archive.write_bytes(b"")
    paths = (empty, other, ours, egg, archive, tmp_path / "missing")
    found = [plugins._may_register(str(path)) for path in paths]
    assert found == [False, False, True, True, True, False]
