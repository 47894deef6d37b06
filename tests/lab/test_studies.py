"""Studies in labs: as a factor, and with the messages of Horovod."""

import pytest
from installation import builds

from lab.conftest import needs_lab
from paceline.analysis.configurations import grouped
from paceline.calibration.emulation import EmulatedDevice
from paceline.measurement.study_runner import run_study
from paceline.store import Status, Store
from paceline.study import StudySettings


@needs_lab
def test_each_lab_is_a_configuration_of_its_own(quick_framework, lab_name, tmp_path):
    settings = StudySettings.of(
        model="resnet20",
        processes="2x1",
        frameworks=[quick_framework.name],
        launches=1,
        labs=["link=100mbit", "link=1gbit+delay=1ms"],
    )
    with Store(tmp_path / "store.db") as store:
        launches = run_study(store, "labs", settings.design())
    assert [one.status for one in launches] == [Status.FINISHED] * 2
    assert {one.environment["lab"] for one in launches} == {"100 Mbit/s", "1 Gbit/s, delay 1.00 ms"}
    assert launches[0].environment["hosts"] == ["198.18.0.1", "198.18.0.2"]
    names = [group.description for group in grouped(launches)]
    assert len(names) == 2 and any("lab of 100 Mbit/s" in one for one in names)


@needs_lab
@pytest.mark.slow
@pytest.mark.framework("horovod-torch", builds=builds())
@pytest.mark.usefixtures("installed", "lab_name")
@pytest.mark.parametrize("emulated", [{}, {"emulate": "v100", "time_scale": 10.0}])
def test_horovod_meets_on_the_links_of_a_lab(emulated, tmp_path):
    """Each host's name means loopback to it, which is not where the others are."""
    settings = StudySettings.of(
        model="resnet20",
        batch=64,
        processes="2x1",
        frameworks=["horovod-torch"],
        launches=1,
        steps=2,
        labs=["link=1gbit"],
        **emulated,
    )
    with Store(tmp_path / "store.db") as store:
        (launch,) = run_study(store, "horovod", settings.design(), timeout_seconds=120.0)
    assert launch.status is Status.FINISHED, launch.outcome.reason
    if emulated:
        slept = EmulatedDevice.of_job(launch.job).step_seconds
        assert min(launch.outcome.ranks[0].wall_seconds) >= 0.999 * slept
