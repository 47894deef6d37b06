"""A study as a directory whose numbers can be computed again."""

import json
import shutil

import pytest
from builders import comparison_launches, keep

from paceline.errors import InputError
from paceline.store import Store
from paceline.study.package import package_study, verify_package


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    root = tmp_path_factory.mktemp("package")
    with Store(root / "own.db") as store:
        keep(store, comparison_launches("both"))
        store.save_design("both", {"jobs": [], "order": [], "seed": 1})
    return package_study("both", store=root / "own.db", out=root / "artifact").directory


@pytest.fixture
def copy(package, tmp_path):
    return shutil.copytree(package, tmp_path / "copy")


def test_a_package_is_verified_on_another_path(copy):
    found = verify_package(copy)
    assert not found.problems
    computed = {name for name, recomputed, _ in found.files if recomputed}
    assert {"results.json", "launches.csv", "steps.csv", "tables/01-throughput.tex"} <= computed
    names = {path.name for path in copy.iterdir()}
    assert {"README.md", "report.html", "store.db", "SHA256SUMS"} <= names
    assert not names & {"store.db-wal", "store.db-shm", "owners"}
    assert found.to_dict()["verified"]


def test_types_of_columns_are_described(copy):
    package = json.loads((copy / "datapackage.json").read_text())
    fields = {one["name"]: one["type"] for one in package["resources"][0]["schema"]["fields"]}
    assert fields["processes"] == "integer"
    assert fields["counted_seconds"] == "number"


@pytest.mark.parametrize("name", ["results.json", "launches.csv", "tables/01-throughput.md"])
def test_a_changed_number_is_found_even_with_a_new_checksum(copy, name):
    (copy / name).write_text((copy / name).read_text().replace("1", "2", 1))
    assert dict(verify_package(copy).problems)[name].startswith("differs from the result")


def test_missing_and_additional_files_are_found(copy):
    (copy / "report.html").unlink()
    (copy / "notes.txt").write_text("mine")
    found = dict(verify_package(copy).problems)
    assert found == {"report.html": "missing", "notes.txt": "not in SHA256SUMS"}


def test_other_directories_and_existing_ones_are_rejected(copy, tmp_path):
    with pytest.raises(InputError, match="is not a package of a study"):
        verify_package(tmp_path)
    with pytest.raises(InputError, match="already exists"):
        package_study("both", store=copy / "store.db", out=copy)
