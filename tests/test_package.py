"""The package as people install it: the wheel in an empty environment, without any extra."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import paceline

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "paceline"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MOST_MEGABYTES = 250.0
"""What the base install and all it depends on may take, unpacked."""

SIZE = """
import importlib.metadata
sizes = [
    file.locate().stat().st_size
    for distribution in importlib.metadata.distributions()
    if distribution.metadata["Name"] not in ("pip", "setuptools")
    for file in distribution.files
    if file.suffix != ".pyc" and file.locate().exists()
]
print(sum(sizes) / 1e6)
"""


def supported_interpreters():
    """This interpreter, and of the other supported versions those that are here."""
    versions = [word.split()[-1] for word in PROJECT["classifiers"] if "Python :: 3." in word]
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in versions:
        if version == f"{sys.version_info.major}.{sys.version_info.minor}":
            yield pytest.param(sys.executable, id=version)
            continue
        places = [shutil.which(f"python{version}"), *home.glob(f"{version}.*/bin/python")]
        works = [str(place) for place in places if place and runs(place, version)]
        if works:
            yield pytest.param(works[0], id=version, marks=pytest.mark.slow)


def runs(python, version):
    """Whether it is a Python of that version; pyenv leaves commands that only say they are not."""
    said = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
    return said.stdout.startswith(f"Python {version}.")


def call(*command, **options):
    """What a command printed; a failure shows its errors."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=600, **options
    )
    assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The source archive of this tree, and the wheel built from that archive."""
    directory = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--directory", directory]
    call(*build, "--target", "sdist", cwd=ROOT)
    (source,) = directory.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(directory, filter="data")
    call(*build, "--target", "wheel", cwd=directory / source.name.removesuffix(".tar.gz"))
    (wheel,) = directory.glob("*.whl")
    return source, wheel


def test_the_wheel_has_every_file_of_the_package(archives):
    _, wheel = archives
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("paceline/")}
    listed = call("git", "ls-files", "--cached", "--others", "--exclude-standard", ".", cwd=SOURCE)
    ours = {f"paceline/{name}" for name in listed.split() if (SOURCE / name).exists()}
    assert packed == ours
    assert {"paceline/py.typed", "paceline/store/schema.sql"} <= packed


def test_the_archive_says_what_it_is(archives):
    source, wheel = archives
    name = f"paceline-{paceline.__version__}"
    assert source.name == f"{name}.tar.gz"
    with tarfile.open(source) as archive:
        members = archive.getnames()
    pages = ("README.md", "LICENSE", "CHANGELOG.md", "docs/start/upgrading.md")
    for needed in (*pages, "pyproject.toml"):
        assert f"{name}/{needed}" in members
    text = zipfile.ZipFile(wheel).read(f"{name}.dist-info/METADATA").decode()
    assert "Requires-Python: <3.14,>=3.11" in text
    assert "Typing :: Typed" in text
    assert "# Paceline" in text


@pytest.mark.parametrize("python", list(supported_interpreters()))
def test_the_wheel_works_in_an_empty_environment(python, archives, tmp_path):
    environment = tmp_path / "environment"
    call(python, "-m", "venv", environment)
    bare = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PACELINE"))}
    bare["HOME"] = str(tmp_path)
    inside, ours = environment / "bin" / "python", environment / "bin" / "paceline"
    call(inside, "-m", "pip", "install", "--quiet", "--only-binary=:all:", archives[1])
    assert call(ours, "--version", env=bare).split()[-1] == paceline.__version__
    for command, expected in {
        "predict --model resnet50 --cluster dgx-1 -j 1x8": "samples/s",
        "advise --model resnet50 --cluster dgx-1 --nodes 1 --global-batch 256": "Next:",
        "sweep --model alexnet --cluster dgx-1 -j 8x1 --axis link=1gbit..100gbit": "Next:",
        "validate --mode cold": "mean",
        "catalog models": "resnet50",
        "catalog publications": "rows",
        "frameworks": "torch-ddp",
        "demo --help": "Example",
        "doctor": "machine",
    }.items():
        assert expected in call(ours, *command.split(), env=bare, cwd=tmp_path), command
    megabytes = float(call(inside, "-c", SIZE, env=bare))
    assert megabytes <= MOST_MEGABYTES
    assert shutil.which("torch", path=str(environment / "bin")) is None
