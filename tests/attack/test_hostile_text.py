"""Text of other people's files on the terminal and on pages: shown, never obeyed."""

import json
import os
import pty
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from builders import a_launch, an_outcome

from attack.nasty import HANG_SECONDS
from paceline.step import Phase, Task
from paceline.step.schedule import schedule
from paceline.store import LayerTiming, Outcome, Status, Store
from paceline.store.tidy_tables import to_csv
from paceline.study import Study
from render.test_page import Document

EVIL = "x\x1b]0;owned\x07\x1b[31mred\x9b31m\u202e"
"""A window title, colours by both kinds of control sequence, and text that runs backwards."""

OBEYED = re.compile("\x1b\\]|\x1b\\[31m|\x07|\x9b|\u202e")

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 16,
}
LAB = f"""\
[device."card{EVIL.encode("unicode_escape").decode().replace(chr(92) + "x", chr(92) + "u00")}"]
kind = "gpu"
"""


def files(folder: Path) -> None:
    """Files whose names and contents are hostile."""
    (folder / "named.json").write_text(json.dumps(CONFIG | {"_name_or_path": EVIL}))
    (folder / "typed.json").write_text(json.dumps(CONFIG | {"model_type": EVIL}))
    (folder / "sized.json").write_text(json.dumps(CONFIG | {"hidden_size": EVIL}))
    (folder / "broken.json").write_text(EVIL)
    (folder / "lab.toml").write_text(LAB)
    (folder / "study.toml").write_text(f'model = "{EVIL[0]}\\u001b]0;x\\u0007"\n')
    (folder / "log.txt").write_text(f"{EVIL}\n" * 5)
    (folder / "net.py").write_text(f"raise ValueError({EVIL!r})\n")
    (folder / "data.csv").write_text(f"{EVIL},b\n1,2\n")
    (folder / f"{EVIL.replace('/', '')}.log").write_text("nothing\n")
    with Store(folder / "store.db") as store:
        bad = replace(an_outcome(), status=Status.FAILED, reason=EVIL)
        store.complete(a_launch("a1", study="s", model=EVIL, framework=EVIL, outcome=an_outcome()))
        store.complete(a_launch("a2", study=f"s{EVIL}", precision=EVIL, outcome=bad))
        store.complete(a_launch("a3", study="s", environment={"host": EVIL}, outcome=bad))


LINES = (
    f"nope{EVIL}",
    f"predict --model {EVIL}",
    f"predict --model gpt2 --cluster {EVIL}",
    f"predict --model gpt2 --cluster dgx-a100 --link {EVIL}",
    f"predict --model gpt2 --cluster dgx-a100 --framework {EVIL}",
    f"predict --model gpt2 --cluster dgx-a100 -j {EVIL}",
    "predict --model named.json --cluster dgx-a100 -j 1x1",
    "predict --model typed.json --cluster dgx-a100",
    "predict --model sized.json --cluster dgx-a100",
    "predict --model broken.json --cluster dgx-a100",
    "predict --model net.py:f --cluster dgx-a100",
    "predict --model gpt2 --cluster lab.toml",
    "whatif --model named.json --cluster dgx-a100 -j 1x2",
    "inspect named.json",
    "advise --model named.json --cluster dgx-a100 --nodes 1 --global-batch 8",
    "measure --from study.toml",
    f"measure --study {EVIL}",
    f"import {EVIL}.log",
    "import log.txt",
    f"import log.txt --program {EVIL}",
    "validate --data data.csv",
    "study list --launches --store store.db",
    "study show a1 --store store.db",
    "study show a2 --store store.db --json",
    f"report s{EVIL} --store store.db",
    f"run --store out.db -- {EVIL}",
)


def on_a_terminal(words: list[str], folder: Path) -> str:
    """Everything that the command sends to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "paceline", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    sent = b""
    try:
        while chunk := os.read(ours, 65536):
            sent += chunk
    except OSError:
        pass
    os.close(ours)
    process.wait(timeout=HANG_SECONDS)
    return sent.decode(errors="replace")


def test_terminal_paths(size, tmp_path):
    files(tmp_path)
    order = list(LINES)
    random.Random(0).shuffle(order)
    for line in order[: size(4, len(LINES))]:
        sent = on_a_terminal(line.split(" "), tmp_path)
        assert sent.strip(), f"nothing was said: {line!r}"
        assert "Traceback" not in sent, line
        assert not OBEYED.search(sent), f"{line!r} sent {OBEYED.findall(sent)}"


TAGS = '</td></script><script>alert(1)</script><img src=x onerror=alert(1)>"' + EVIL


def hostile(**changes):
    """A launch with something hostile in it, beside a good one."""
    return [a_launch("a0", outcome=an_outcome()), a_launch("a1", **changes)]


def outcome(**changes):
    return replace(an_outcome(), **changes)


def facts(**changes):
    return outcome(facts={"exit_codes": [0, 0], **changes})


TIMELINE = schedule([Task(TAGS, Phase.FORWARD, "compute", 0.1, layer=TAGS)])
LAYER = LayerTiming(TAGS, 0.1, 0.2, 4.0)
PAGES = {
    "model": {"model": TAGS},
    "framework": {"framework": TAGS},
    "precision": {"precision": TAGS},
    "instrument": {"instrument": TAGS},
    "provenance": {"provenance": TAGS},
    "date": {"created_at": TAGS},
    "reason": {"outcome": outcome(status=Status.FAILED, reason=TAGS)},
    "interrupted": {"outcome": Outcome(Status.INTERRUPTED, TAGS, TAGS)},
    "layer": {
        "outcome": outcome(layers=(LayerTiming(TAGS, 0.1, 0.2, 4.0),)),
        "instrument": "layers",
    },
    "task": {"outcome": outcome(timeline=TIMELINE), "instrument": "phases"},
    "version": {"outcome": facts(versions={"framework": TAGS, TAGS: TAGS})},
    "note": {"outcome": facts(notes=[TAGS])},
    "directory": {"outcome": facts(directory=TAGS)},
    "teardown": {"outcome": facts(teardown=TAGS)},
    "host": {"environment": {"host": TAGS, "cores": 2}},
    "processor": {"environment": {"cpu_model": TAGS, "cores": 2}},
    "commit": {"environment": {"git_commit": TAGS, "paceline": TAGS, "python": TAGS}},
    "variable": {"environment": {"variables": {TAGS: TAGS}}},
    "command": {"job": {"command": [TAGS]}},
    "study": {"study": TAGS},
}


@pytest.mark.parametrize("kind", PAGES)
def test_html_paths(kind, tmp_path):
    launches = hostile(**{"outcome": an_outcome(), **PAGES[kind]})
    with Store(tmp_path / "store.db") as store:
        for launch in launches:
            store.complete(replace(launch, study=launches[1].study, job={**launch.job}))
    page = Study.load(launches[1].study, tmp_path / "store.db").report(tmp_path / "page.html")
    html = page.read_text()
    document = Document(html)
    assert "img" not in document.tags
    assert document.tags.count("script") <= 1
    assert not any(name.startswith("on") for name, _ in document.attributes)
    assert not OBEYED.search(html)


def test_commands_for_copying_are_quoted(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps(CONFIG | {"_name_or_path": "x; touch pwned #"})
    )
    words = ["predict", "--model", "config.json", "--cluster", "dgx-a100", "-j", "1x1"]
    sent = on_a_terminal(words, tmp_path)
    following = sent.rpartition("Next: ")[2]
    assert "config.json" in following
    assert "pwned" not in following


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t=", "\r=", "\n=", "\uff1d"])
def test_cells_of_a_table_are_no_formulas(sign, tmp_path):
    path = tmp_path / "t.csv"
    with path.open("wb") as file:
        assert to_csv([{"name": f"{sign}1+1", "n": 1}], file) == 1
    text = path.read_text()
    assert text.splitlines()[1].lstrip('"').startswith("'")
    assert "\r" not in text


def test_a_report_stays_where_it_is_asked_for(tmp_path, monkeypatch):
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    with Store(tmp_path / "store.db") as store:
        store.complete(a_launch("a1", study="../evil", outcome=an_outcome()))
    words = ["report", "../evil", "--store", str(tmp_path / "store.db")]
    answer = subprocess.run(
        [sys.executable, "-m", "paceline", *words],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert answer.returncode == 0, answer.stderr
    assert not (tmp_path / "evil.html").exists()
    assert len(list(inner.iterdir())) == 1
