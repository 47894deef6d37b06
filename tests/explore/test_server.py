"""The server answers its own page on loopback and nobody else."""

import json
import urllib.error
import urllib.request
from importlib import resources

import pytest


def ask(address, path, body=b"{}", **headers):
    request = urllib.request.Request(address + path, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def test_an_answer_and_its_policy(explorer):
    status, body, headers = ask(explorer, "api/answer", b'{"nodes": 2, "batch": 16}')
    found = json.loads(body)
    assert status == 200
    assert found["facts"] and found["rows"] and "<svg" in found["figures"]["scaling"]["wide"]
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("", None, 200),
        ("nothing", None, 404),
        ("study/nothing", None, 404),
        ("api/answer", None, 405),
        ("api/answer", b"{}", 200),
    ],
)
def test_every_response_has_the_security_headers(explorer, path, body, status):
    answered, _, headers = ask(explorer, path, body)
    assert answered == status
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1:80@evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_other_sites_are_refused(explorer, headers):
    status, body, _ = ask(explorer, "api/answer", **headers)
    assert (status, json.loads(body)) == (
        403,
        {"error": "requests from other hosts or origins are refused"},
    )


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("api/answer", b"{", 200),
        ("api/answer", b"[]", 200),
        ("api/answer", b'{"model": "/etc/passwd"}', 200),
        ("api/answer", b'{"nodes": -1}', 200),
        ("api/answer", b" " * 30_000, 200),
        ("api/answer", b"[" * 15_000, 200),
        ("api/panel/nothing", b"{}", 404),
        ("api/panel/..%2f..%2fetc", b"{}", 404),
        ("api/run", b"{}", 404),
        ("../../etc/passwd", None, 404),
    ],
)
def test_what_cannot_be_is_refused(explorer, path, body, status):
    answered, body, _ = ask(explorer, path, body)
    assert answered == status
    assert status == 404 or json.loads(body).keys() == {"error", "hint"}


def test_a_model_file_is_read_and_a_script_is_not(explorer):
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100}
    own = {"x-file-name": "config.json"}
    status, body, _ = ask(explorer, "api/model", json.dumps(config).encode(), **own)
    model = json.loads(body)["model"]
    assert status == 200 and model.startswith("upload:")
    asked = json.dumps({"model": model, "nodes": 2, "batch": 4}).encode()
    assert ask(explorer, "api/answer", asked)[0] == 200
    status, body, _ = ask(explorer, "api/model", b"import os", **{"x-file-name": "evil.py"})
    assert status == 200 and "expected config.json" in json.loads(body)["error"]


def test_the_headline_of_a_plan_that_does_not_fit_is_that_it_does_not(explorer):
    asked = {"model": "llama3_70b", "cluster": "dgx-h100", "nodes": 2, "batch": 32, "seq": 4096}
    asked["framework"] = "torch-ddp"
    _, body, _ = ask(explorer, "api/answer", json.dumps(asked).encode())
    (fact,) = json.loads(body)["facts"]
    assert (fact["value"], fact["kind"]) == ("does NOT fit", "alarm")
    assert fact["note"].endswith("and has 85.5 GB")


def test_the_memory_bar_has_the_class_that_the_style_marks():
    templates = resources.files("paceline") / "explore" / "templates"
    assert 'byId("memory").classList.toggle("over"' in (templates / "explore.js").read_text()
    assert ".memory.over {" in (templates / "explore.css").read_text()
