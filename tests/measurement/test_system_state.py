"""What of the system is written down with a launch, from files as systems have them."""

import json

from paceline.measurement.environment import describe_environment
from paceline.measurement.system_state import system_state


def files(root, **texts):
    for name, text in texts.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_system_state_is_read(tmp_path):
    cpu = tmp_path / "sys/devices/system/cpu"
    for number in (0, 1):
        (cpu / f"cpu{number}/cpufreq").mkdir(parents=True)
        (cpu / f"cpu{number}/cpufreq/scaling_governor").write_text("performance\n")
        (tmp_path / f"sys/devices/system/node/node{number}").mkdir(parents=True)
    (cpu / "intel_pstate").mkdir()
    (cpu / "intel_pstate/no_turbo").write_text("1")
    files(
        tmp_path,
        proc__cpuinfo="cpu MHz\t\t: 2000.0\ncpu MHz : 3000.0\ncpu MHz : odd\n",
        proc__sys__kernel__sched_autogroup_enabled="1\n",
        proc__meminfo="MemTotal: 5 kB\nSwapTotal:  2 kB\n",
        sys__kernel__mm__transparent_hugepage__enabled="always [madvise] never\n",
    )
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text("150000 100000\n")
    (tmp_path / ".dockerenv").touch()
    found = system_state(tmp_path)
    expected = {
        "governor": "performance",
        "frequency_hertz": 2.5e9,
        "turbo": False,
        "autogroup": True,
        "quota_cores": 1.5,
        "numa_nodes": 2,
        "huge_pages": "madvise",
        "container": "docker",
        "swap_bytes": 2048.0,
    }
    assert expected.items() <= found.items()


def test_unknown_system_state_is_omitted(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    found = system_state(tmp_path)
    assert not {"governor", "frequency_hertz", "turbo", "quota_cores", "container"} & found.keys()
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text("max 100000\n")
    assert "quota_cores" not in system_state(tmp_path)


def test_it_is_part_of_every_launch():
    environment = describe_environment()
    assert environment["scheduling"]
    json.dumps(environment)
