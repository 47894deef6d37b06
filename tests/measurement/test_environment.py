"""What is written down of the machine: no secret, and nothing of a repository is run."""

import subprocess

import pytest

from paceline.measurement import environment


def test_only_variables_that_are_known_to_matter_are_kept(monkeypatch):
    secrets = ("SLURM_JWT", "TORCH_HUB_TOKEN", "NCCL_SECRET", "CUDA_API_KEY", "HOROVOD_PASSWORD")
    for name in secrets:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    kept = environment.describe_environment()["variables"]
    assert kept["OMP_NUM_THREADS"] == "3"
    assert "secret" not in kept.values()


@pytest.mark.parametrize("setting", ["core.fsmonitor", "core.sshCommand", "core.pager"])
def test_programs_that_a_repository_names_are_not_run(tmp_path, setting):
    """The git configuration of a foreign directory could run arbitrary commands."""
    touched, program = tmp_path / "touched", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {touched}\n")
    program.chmod(0o755)
    for arguments in (["init", "-q"], ["config", setting, str(program)]):
        subprocess.run(["git", *arguments], check=True, cwd=tmp_path)
    (tmp_path / "file").write_text("x")
    identity = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "core.fsmonitor=false"]
    subprocess.run(["git", "add", "file"], check=True, cwd=tmp_path)
    subprocess.run(["git", *identity, "commit", "-qm", "x"], check=True, cwd=tmp_path)
    touched.unlink(missing_ok=True)
    environment.git_commit.cache_clear()
    try:
        assert len(environment.git_commit()) == 40
    finally:
        environment.git_commit.cache_clear()
    assert not touched.exists()
