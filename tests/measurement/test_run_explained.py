"""``run`` of a study that has other numbers of processes prints the step by cause."""

from builders import keep, study_launches

import paceline as pl
from paceline.measurement import api
from paceline.store import Store


def test_a_run_of_another_size_is_explained(tmp_path, monkeypatch):
    path, known = tmp_path / "own.db", study_launches("mine")
    with Store(path) as store:
        keep(store, known)
    monkeypatch.setattr(api, "run_watched", lambda *_: known[-1])
    found = pl.run("python train.py", study="mine", store=path)
    assert str(pl.explain("mine", store=path)) in str(found)
    with Store(tmp_path / "one.db") as store:
        keep(store, [one for one in known if one.world_size == known[-1].world_size])
    assert pl.run("python train.py", study="mine", store=tmp_path / "one.db").explanation is None
