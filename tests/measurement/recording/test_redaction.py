"""Secrets of command lines are not recorded; options that only look like secrets are."""

import pytest

from paceline.measurement.recording.redaction import REDACTED, redacted

SECRETS = [
    "--password=hunter2",
    "--password hunter2",
    "--db-passwd hunter2",
    "--hf_token hunter2",
    "--token=hunter2",
    "--hub-token=hunter2",
    "--wandb_api_key hunter2",
    "-token hunter2",
    "env WANDB_API_KEY=hunter2 python train.py",
    "wandb.api_key=hunter2",
    "--client-secret hunter2",
    "--aws_secret_access_key=hunter2",
    "--auth hunter2",
    "--url https://user:hunter2@host/path",
    "--url https://hunter2@host/path",
    "--url http://host/?token=hunter2",
    "hf_hunter2AbCdEfGhIjKlMnOp",
    "--x ghp_hunter2AbCdEfGhIjKlMnOp",
    "--x sk-hunter2AbCdEfGhIjKlMnOp",
]
PLAIN = [
    "--tokens 1000",
    "--max-tokens 5",
    "--tokenizer gpt2",
    "--pad-token x",
    "--eos_token=y",
    "--num-key-value-heads 8",
    "--keys a,b",
    "--authors me",
    "--data s3://bucket/key",
    "--lr 0.1 --name monkey=2",
    "user@host:/path",
]


@pytest.mark.parametrize("line", SECRETS)
def test_secrets_are_replaced(line):
    found = redacted(["python", "train.py", *line.split(), "--epochs", "3"])
    assert "hunter2" not in " ".join(found) and REDACTED in " ".join(found)
    assert found[:2] == ["python", "train.py"] and found[-2:] == ["--epochs", "3"]


@pytest.mark.parametrize("line", SECRETS)
def test_secrets_in_a_shell_line_are_replaced(line):
    (found,) = redacted([f"cd /x && python train.py {line} --epochs 3"])
    assert "hunter2" not in found and found.endswith("--epochs 3")


@pytest.mark.parametrize("line", PLAIN)
def test_other_options_are_kept(line):
    assert redacted(line.split()) == line.split()
    assert redacted([line]) == [line]
