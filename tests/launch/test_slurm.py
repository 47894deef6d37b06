"""Batch scripts for Slurm, and parsing of its error messages."""

import json
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from paceline.errors import EnvironmentUnusableError, InputError, PacelineError
from paceline.launch import LaunchRequest, LaunchSettings, launcher, slurm_job
from paceline.launch.launch_script import PreparedLaunch
from paceline.launch.slurm_commands import slurm_failure_cause

SINFO = """#!/bin/sh
case "$*" in
  *-N*) printf 'n1 8\\nn2 8\\n';;
  *) printf 'debug*\\nlong\\n';;
esac
"""


@pytest.fixture
def _commands(tmp_path, monkeypatch):
    """Slurm's commands, of which only sinfo prints something."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sbatch", "srun", "squeue", "sinfo"):
        (folder / name).write_text(SINFO)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"):
        monkeypatch.delenv(name, raising=False)


def slurm(**options):
    return launcher("slurm", LaunchSettings((), options))


def request_in(directory):
    command = (sys.executable, "-c", "pass")
    return LaunchRequest(lambda rank: command, directory, 600.0, 2, 4, cores_per_rank=3)


def test_site_file_has_defaults_that_options_replace(tmp_path, monkeypatch):
    site = tmp_path / "site.toml"
    site.write_text('[slurm]\naccount = "lab"\npartition = "gpu"\n[ssh]\nuser = "me"\n')
    monkeypatch.setenv("PACELINE_SITE", str(site))
    assert slurm(partition="long").settings.options == {"account": "lab", "partition": "long"}
    assert launcher("local", LaunchSettings()).settings.options == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[slrum]\naccount = "lab"', "no launcher named 'slrum'"),
        ("[slurm]\naccount = 4", "account of .slurm. must be a string, not 4"),
        ('[slurm]\npartitions = "gpu"', "no option of the launcher 'slurm' named 'partitions'"),
        ('[slurm]\naccount = "a\\nb"', "control character"),
        ("slurm = 1", "slurm must be a table"),
    ],
)
def test_errors_of_a_site_file(text, message, tmp_path, monkeypatch):
    (tmp_path / "site.toml").write_text(text)
    monkeypatch.setenv("PACELINE_SITE", str(tmp_path / "site.toml"))
    with pytest.raises(PacelineError, match=message):
        slurm()


@pytest.mark.parametrize(
    "output",
    ["printf '\\377\\200'", "echo a b c", "echo n1 4+ idle", "echo n1 nan", "exit 3", "true"],
)
def test_unreadable_answers_of_slurm_are_one_error(output, _commands, tmp_path):
    (tmp_path / "bin" / "sinfo").write_text(f"#!/bin/sh\n{output}\n")
    with pytest.raises(PacelineError):
        slurm().validate(2, 1)
    if output == "exit 3":
        with pytest.raises(EnvironmentUnusableError, match="'sinfo' failed"):
            slurm().hosts()
    else:
        assert all(host.cores is None for host in slurm().hosts())


def test_batch_script_contains_the_options_of_the_site(tmp_path):
    chosen = slurm(
        partition="long", account="lab", constraint="a100", qos="high", gpus="4",
        container="image.sqsh", mounts="/data:/data", srun="--mpi=pmix",
    )  # fmt: skip
    chosen.prepare(request_in(tmp_path))
    script = (tmp_path / "launch.sbatch").read_text()
    for line in (
        "nodes=2", "ntasks-per-node=4", "cpus-per-task=3", "time=11", "partition=long",
        "account=lab", "constraint=a100", "qos=high", "gpus-per-node=4", "requeue",
    ):  # fmt: skip
        assert f"#SBATCH --{line}\n" in script
    (step,) = [line for line in script.splitlines() if line.startswith("exec srun ")]
    mounts = f"--container-mounts=/data:/data,{tmp_path}:{tmp_path}"
    for word in ("--container-image=image.sqsh", mounts, "--mpi=pmix"):
        assert f" {word} " in step
    assert step.endswith(
        f" env PACELINE_RANK_PYTHON=python3 python3 -I -S {tmp_path}/agent {tmp_path}"
    )


def test_options_of_administrators_are_directives_also_of_prepared_arrays(tmp_path):
    chosen = slurm(
        memory="0", signal="B:USR1@60", exclusive="yes", modules="gcc cuda/12",
        sbatch="--comment='a b' -p debug --nice",
    )  # fmt: skip
    request = request_in(tmp_path / "launch-0000")
    for script in (chosen.script(request, "true"), chosen.script(request, "true", array="0%1")):
        for line in ("--mem=0", "--signal=B:USR1@60", "--exclusive", '--comment="a b"', "-p debug",
                     "--nice"):  # fmt: skip
            assert f"#SBATCH {line}\n" in script
        assert script.startswith("#!/bin/bash -l\n")
        assert "\nmodule load gcc cuda/12\ntrue\n" in script


def test_prepared_launches_are_submitted_one_after_the_other_in_order(tmp_path, monkeypatch):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sbatch").write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/noted\nwc -l < {tmp_path}/noted\n'
    )
    (programs / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    launches = []
    for number, processes in enumerate((1, 2, 2, 1)):
        request = replace(request_in(tmp_path / f"launch-{number:04d}"), processes=processes)
        launches.append(PreparedLaunch(number, request, ()))
    first, *_ = slurm().write_study(tmp_path, launches)
    subprocess.run([first], check=True, timeout=60, capture_output=True)
    one, two = (tmp_path / f"array-2x{count}.sbatch" for count in (1, 2))
    assert (tmp_path / "noted").read_text().splitlines() == [
        f"--parsable --array=0%1 {one}",
        f"--parsable --dependency=afterany:1 --array=1,2%1 {two}",
        f"--parsable --dependency=afterany:2 --array=3%1 {one}",
    ]


@pytest.mark.usefixtures("_commands")
def test_nodes_that_are_down_are_not_counted(tmp_path):
    states = ("n1 8 idle", "n2 8 down*", "n3 8 drain", "n4 8 mix", "n5 8 alloc*", "n6 8 drng")
    listed = "\\n".join(states)
    (tmp_path / "bin" / "sinfo").write_text(f"#!/bin/sh\nprintf '{listed}\\n'\n")
    assert [host.name for host in slurm().hosts()] == ["n1", "n4"]


@pytest.mark.parametrize(("state", "cancelled"), [("CANCELLED", True), ("FAILED", False)])
def test_a_job_that_somebody_cancels_ends_the_study(state, cancelled, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_job, "run_slurm", lambda *command: "7")
    monkeypatch.setattr(slurm_job, "job_state", lambda job: (state, ""))
    limits = {"queue_seconds": 9, "timeout_seconds": 9, "requeues": 1, "world_size": 1}
    assert slurm_job.Follower(tmp_path, limits, threading.Event()).run() == 1
    found = json.loads((tmp_path / "slurm-job.json").read_text())
    assert found["cancelled"] is cancelled and found["jobs"] == ["7"]
    assert ("cancelled" in found["reason"]) is cancelled


def test_value_with_a_space_is_quoted_in_its_directive(tmp_path):
    directory = tmp_path / "a b%j"
    directory.mkdir()
    slurm(constraint='x#"y').prepare(request_in(directory))
    script = (directory / "launch.sbatch").read_text()
    assert f'#SBATCH --output="{tmp_path}/a b%%j/slurm-%j.out"\n' in script
    assert '#SBATCH --constraint="x#\\"y"\n' in script


@pytest.mark.parametrize("character", ["\n", "\r", "\0", "\x1b", "\x85", "\u2028"])
def test_control_characters_are_refused_before_a_script_is_written(tmp_path, character):
    bad = f"debug{character}touch PWNED"
    for what, wrong in {
        "launcher option 'partition'": lambda: LaunchSettings((), {"partition": bad}),
        "a host name": lambda: LaunchSettings((bad,)),
        "the directory of the launch": lambda: request_in(tmp_path / bad),
        "environment variable 'A'": lambda: replace(
            request_in(tmp_path), variables=lambda rank: {"A": bad}
        ),
    }.items():
        with pytest.raises(InputError, match=f"{what} contains a control character"):
            wrong()


@pytest.mark.usefixtures("_commands")
def test_a_launch_inside_an_allocation_is_a_step_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    ((program, *_),) = slurm().prepare(request_in(tmp_path))
    assert program == "srun"
    assert not (tmp_path / "launch.sbatch").exists()


@pytest.mark.usefixtures("_commands")
def test_a_partition_that_is_not_there_is_refused_before_anything_starts():
    slurm(partition="long").validate(2, 4)
    with pytest.raises(InputError, match="Slurm has no partition 'short'") as refused:
        slurm(partition="short").validate(2, 4)
    assert refused.value.hint == "choose one of debug, long"
    with pytest.raises(InputError, match="cannot start 3 nodes: this Slurm cluster has 2"):
        slurm().validate(3, 1)
    for wrong in ("often", "\u00b2", "9" * 5000):
        with pytest.raises(InputError, match="requeue must be an integer"):
            slurm(requeue=wrong).validate(1, 1)
    with pytest.raises(InputError, match="chooses the hosts itself"):
        launcher("slurm", LaunchSettings(("n1",)))


def test_missing_slurm_error_has_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentUnusableError, match="'slurm' is not available") as refused:
        slurm().validate(1, 1)
    assert refused.value.hint.startswith("sbatch is not installed")


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("sbatch: error: invalid partition specified: x\nsbatch: error: Batch job "
         "submission failed: Invalid partition name specified", "Slurm has no partition 'x'"),
        ("sinfo: error: Unable to contact slurm controller (connect failure)",
         "the Slurm controller does not answer"),
        ("srun: error: Node failure on n2", "node n2 failed"),
        ("sbatch: error: Batch job submission failed: Invalid account or account/partition "
         "combination specified",
         "the account is unknown or may not use the partition"),
        ("srun: error: something new", "something new"),
        ("all is well", ""),
    ],
)  # fmt: skip
def test_slurm_errors_are_parsed(log, cause):
    assert slurm_failure_cause(log) == cause
