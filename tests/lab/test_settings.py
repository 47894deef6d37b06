import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.lab import LabSettings
from paceline.lab.link_shaping import burst_bytes, goodput
from paceline.lab.settings import validated_name


def test_settings_are_read_as_people_write_them():
    found = LabSettings.of({"hosts": "4", "link": "1gbit", "delay": "20ms", "speed": "0.5"})
    assert found == LabSettings(4, 125e6, 0.02, 0.5)
    assert found.description == "4 hosts, 1 Gbit/s, delay 20.0 ms, speed 0.5"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hosts": 0}, "(got 0)"),
        ({"hosts": 1000}, "(got 1000)"),
        ({"hosts": "many"}, "'many'"),
        ({"hosts": 2, "link": "100gbit"}, "100 Gbit/s"),
        ({"hosts": 2, "link": "1kbit"}, "1 kbit/s"),
        ({"hosts": 2, "link": "fast"}, "'fast'"),
        ({"hosts": 2, "delay": "1us"}, "1.00 us"),
        ({"hosts": 2, "delay": "1h"}, "3600"),
        ({"hosts": 2, "speed": "0"}, "(got 0)"),
        ({"hosts": 2, "speed": "nan"}, "'nan'"),
        ({"hosts": 2, "speed": "quick"}, "'quick'"),
    ],
)
def test_unsupported_settings_are_rejected_with_a_hint(values, message):
    with pytest.raises(InputError) as caught:
        LabSettings.of(values)
    assert message in caught.value.message.replace(",", "")
    assert caught.value.hint


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(UnknownNameError, match="delya"):
        LabSettings.of({"hosts": 2, "delya": "1ms"})


def test_links_faster_than_the_cores_give_a_warning():
    assert LabSettings(8, 125e6).warnings(cores=2) == ()
    assert LabSettings(4, 312.5e6).warnings(cores=2) == ()
    (doubt,) = LabSettings(8, 312.5e6).warnings(cores=2)
    assert "2.5 Gbit/s" in doubt and "1.25 Gbit/s" in doubt
    assert "not shaped" in LabSettings(2).warnings(cores=2)[0]
    assert "share 2 cores" in LabSettings(4, 125e6, speed=1.0).warnings(cores=2)[0]


@pytest.mark.parametrize("name", ["", "Lab", "a/b", "../x", "a" * 21, "1st"])
def test_a_name_that_no_namespace_can_have_is_refused(name):
    with pytest.raises(InputError):
        validated_name(name)


def test_a_burst_is_a_short_time_of_its_link():
    for rate in (12.5e6, 125e6, 312.5e6, 1.25e9):
        assert burst_bytes(rate) / rate < 3e-3
    assert goodput(125e6) == pytest.approx(119.55e6, rel=1e-4)
