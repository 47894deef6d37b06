"""Every public function returns a value: short repr, text, HTML, dictionary, data frame, pickle."""

import inspect
import json
import pickle
import sys
import types
from pathlib import Path

import pytest
from builders import comparison_launches, keep, keep_profile, study_launches

import paceline as pl
from paceline.json_text import json_text
from paceline.render.result import LONGEST_SUMMARY, PublicResult
from paceline.store import Store

FIXTURES = Path(__file__).parent / "fixtures"
LOG, TRACE = FIXTURES / "logs/caffe_train_recorded.log", FIXTURES / "traces/operations.csv"
JOB = {"model": "resnet50", "cluster": "dgx-1"}
CALLS = {
    "advise": lambda: pl.advise("gpt2", "dgx-a100", nodes=1, global_batch=64),
    "bandwidth_for": lambda: pl.bandwidth_for(**JOB, nodes=2, target_efficiency=0.8),
    "calibrate": lambda: pl.calibrate(probe=False, store="own.db"),
    "clusters": pl.clusters,
    "compare": lambda: pl.compare("mine", "again", store="own.db"),
    "devices": lambda: pl.devices("a100"),
    "doctor": pl.doctor,
    "explain": lambda: pl.explain("mine", store="own.db"),
    "export": lambda: pl.export("launches.csv", store="own.db"),
    "export_pages": lambda: pl.export_pages("pages", study="mine", store="own.db"),
    "framework_profiles": pl.framework_profiles,
    "import_launches": lambda: pl.import_launches(LOG, store="own.db"),
    "inspect": lambda: pl.inspect("resnet20"),
    "installed_frameworks": pl.installed_frameworks,
    "labs": pl.labs,
    "launches": lambda: pl.launches("mine", store="own.db"),
    "libraries": pl.libraries,
    "links": pl.links,
    "merge_store": lambda: pl.merge_store("other.db", store="own.db"),
    "models": lambda: pl.models("resnet"),
    "package_study": lambda: pl.package_study("mine", store="own.db"),
    "predict": lambda: pl.predict(**JOB),
    "predict of several": lambda: pl.predict(**JOB, batch=[16, 32]),
    "predictor_constants": pl.predictor_constants,
    "published_rows": lambda: pl.published_rows(family="hkbu", limit=3),
    "published_sources": pl.published_sources,
    "read_log": lambda: pl.read_log(LOG),
    "recipes": lambda: pl.recipes("caffe"),
    "reproduce": lambda: pl.reproduce("A"),
    "show": lambda: pl.show("l6", store="own.db"),
    "studies": lambda: pl.studies(store="own.db"),
    "sweep": lambda: pl.sweep("alexnet", "hkbu-v100-pcie", "link=1gbit,10gbit", nodes=2),
    "trace": lambda: pl.trace(TRACE),
    "utilisation": lambda: pl.utilisation("mine", device="v100", store="own.db"),
    "validate": lambda: pl.validate(["rows.csv"], modes=["cold"]),
    "verify_package": lambda: pl.verify_package(
        pl.package_study("mine", store="own.db", out="artifact").directory
    ),
    "whatif": lambda: pl.whatif(**JOB),
    "write_report": lambda: pl.write_report("mine", store="own.db"),
    "Study": lambda: pl.Study.load("theirs", "own.db"),
}
RUNS = {"check_hosts", "calibrate_links", "create_lab", "demo", "install_frameworks", "measure"}
RUNS |= {"noise_test", "rerun", "run", "verify_frameworks"}
"""Functions that start processes: their results are tested with their commands."""
NO_RESULT = {"annotate", "capture", "delete_study", "record", "remove_frameworks", "remove_lab"}
NO_RESULT |= {"rename_study", "run_ranks", "serve_explorer", "use_framework"}


@pytest.fixture(autouse=True)
def _world(tmp_path):
    with Store(tmp_path / "own.db") as store:
        keep(store, study_launches("mine"))
        keep(store, study_launches("again", prefix="a"))
        keep(store, comparison_launches("theirs"))
        keep_profile(store)
    Store(tmp_path / "other.db").close()
    pl.published_rows(family="hkbu", where=["devices<=2", "model=resnet50"], export="rows.csv")


def test_every_public_function_is_covered():
    functions = {name for name in pl.__all__ if inspect.isfunction(getattr(pl, name))}
    assert functions == {name.split()[0] for name in CALLS} - {"Study"} | RUNS | NO_RESULT


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_a_value(name, monkeypatch):
    found = CALLS[name]()
    assert isinstance(found, PublicResult)
    assert "\n" not in repr(found)
    assert len(repr(found)) <= LONGEST_SUMMARY + 40
    assert str(found) == "\n".join(map(str, found.parts()))
    assert found._repr_html_().startswith("<")
    kind, _, version = found.schema.rpartition("/")
    document = json.loads(json_text(kind, int(version), found.to_dict()))
    assert document["schema"] == f"paceline/{found.schema}"
    copy = pickle.loads(pickle.dumps(found))
    assert (repr(copy), str(copy)) == (repr(found), str(found))
    frames = []
    pandas = types.SimpleNamespace(DataFrame=lambda rows: frames.append(rows) or "frame")
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    assert found.to_dataframe() == "frame"
    assert all(isinstance(row, dict) for row in frames[0])
    assert frames[0]


def test_a_data_frame_needs_a_library(monkeypatch):
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(pl.PacelineError, match="needs pandas or polars"):
        pl.links().to_dataframe()


def test_an_unknown_keyword_is_one_clear_error():
    with pytest.raises(pl.PacelineError, match="bogus"):
        pl.measure(bogus=2)
