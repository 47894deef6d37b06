"""Studies renamed, deleted, annotated and merged, with all that belongs to them."""

from dataclasses import replace

import pytest
from builders import keep, study_launches

from paceline.errors import InputError, PacelineError, StoreError
from paceline.store import Outcome, Status, Store
from paceline.store.housekeeping import (
    annotate,
    delete_study,
    merge_stores,
    notes_of,
    rename_study,
    study_summaries,
)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "own.db") as opened:
        keep(opened, study_launches("first", prefix="a"))
        keep(opened, study_launches("second", prefix="b"))
        opened.save_design("first", {"jobs": [], "order": [], "seed": 1})
        yield opened


def test_studies_are_summed_up_without_reading_their_launches(store):
    first, second = study_summaries(store)
    assert (first.name, first.launches) == ("first", store.count("first"))
    assert first.finished + first.failed <= first.launches
    assert second.models == store.launches("second")[0].model
    assert first.notes == ()


def test_a_renamed_study_keeps_its_launches_design_and_notes(store):
    before = [replace(one, study="") for one in store.launches("first")]
    annotate(store, "first", "new kernel")
    rename_study(store, "first", "renamed")
    assert [replace(one, study="") for one in store.launches("renamed")] == before
    assert store.design("first") is None
    assert store.design("renamed") is not None
    assert notes_of(store, "renamed") == ("new kernel",)
    with pytest.raises(InputError, match="already"):
        rename_study(store, "renamed", "second")
    with pytest.raises(InputError, match="no study named 'first'"):
        rename_study(store, "first", "third")


def test_a_deleted_study_is_gone_with_its_logs_and_nothing_else(store):
    others = store.launches("second")
    launch = store.launches("first")[0]
    logs = store.path.parent / "launches" / launch.id
    logs.mkdir(parents=True)
    annotate(store, launch.id, "odd")
    assert delete_study(store, "first") > 0
    assert store.studies() == ["second"]
    assert store.launches("second") == others
    assert store.design("first") is None
    assert not logs.exists()
    assert notes_of(store, launch.id) == ()
    with pytest.raises(InputError, match="no study named"):
        delete_study(store, "first")


def test_running_study_is_neither_renamed_nor_deleted(store):
    with store.locked_study("first"):
        for change in (
            lambda: delete_study(store, "first"),
            lambda: rename_study(store, "first", "x"),
        ):
            with pytest.raises(InputError, match="is being measured"):
                change()


def test_launches_are_annotated_by_the_beginning_of_their_id(store):
    launch = store.launches("first")[0]
    annotate(store, launch.id[:-1] if len(launch.id) > 3 else launch.id, "slow disk")
    assert notes_of(store, launch.id) == ("slow disk",)
    with pytest.raises(PacelineError):
        annotate(store, "nothing", "x")
    with pytest.raises(InputError, match="empty"):
        annotate(store, "first", "  ")


def test_stores_are_merged_once_and_names_do_not_mix(store, tmp_path):
    other = tmp_path / "lab.db"
    with Store(other) as source:
        keep(source, study_launches("first", prefix="c"))
        keep(source, study_launches("third", prefix="d"))
        keep(source, store.launches("second"))
        running = replace(
            source.launches("third")[0], id="eee", outcome=Outcome(Status.RUNNING, "")
        )
        source.start(running)
        annotate(source, "third", "from the lab")
    found = merge_stores(store, other)
    assert found.renamed == {"first": "first-lab"}
    assert found.known == store.count("second")
    assert found.unfinished == 1
    assert store.count("first-lab") == store.count("first")
    assert notes_of(store, "third") == ("from the lab",)
    again = merge_stores(store, other)
    assert (again.copied, again.known) == (0, found.copied + found.known)
    with pytest.raises(StoreError, match="into itself"):
        merge_stores(store, store.path)


def test_a_failure_in_the_midst_changes_nothing(store):
    with pytest.raises(RuntimeError), store.transaction() as connection:
        connection.execute("DELETE FROM launches")
        raise RuntimeError
    assert store.count() > 0
