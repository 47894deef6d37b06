"""Every reader and loader on files that came to harm: one line for the user, bounded time, memory.

With --all 20,000 inputs: those here, and the logs and traces of ``tests/importers/test_fuzz.py``.
"""

import gzip
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from builders import a_launch, an_outcome
from click.testing import CliRunner
from measurement import quick
from mutations import SAMPLES
from PIL import Image

import paceline
from attack.nasty import (
    HANG_SECONDS,
    VALUES,
    json_text,
    spoilt,
    spoilt_bytes,
    spoilt_json,
    spoilt_toml,
)
from importers.test_fuzz import fuzz as fuzz_logs_and_traces
from paceline.cli.main import cli
from paceline.errors import InputError, PacelineError, PacelineWarning
from paceline.explore.uploads import Uploads
from paceline.frameworks.framework_registry import frameworks
from paceline.frameworks.runtime import datasets
from paceline.hardware import catalogue
from paceline.importers.traces import read_layer_trace
from paceline.launch import launch_files
from paceline.launch.launch_files import check_launch
from paceline.measurement.dry_run import prepare_study
from paceline.measurement.events import measured_step, rank_steps, read_events, step_parts
from paceline.measurement.recording.collect import read_processes, watched_job
from paceline.measurement.study_design import Design
from paceline.store import Store
from paceline.study.package import package_study, verify_package
from paceline.study.study_settings import StudySettings
from paceline.workload.capture import load_user_model
from workload.capture import test_hugging_face as published
from workload.capture import test_onnx as exported

SECONDS, WAITING_SECONDS = 10, 60
"""Limits of one input in CPU time, and in all: other programs may use the machine too."""
MEGABYTES = 1000

CONFIGS = [
    value for value in vars(published).values() if isinstance(value, dict) and "model_type" in value
]
CLUSTER = """\
[device.card]
vendor = "lab"
kind = "gpu"
memory = "24 GB"
memory_bandwidth = "900 GB/s"
peak_flops = { fp32 = "15 TFLOP/s", bf16 = "120 TFLOP/s" }

[link.net]
scope = "inter"
bandwidth = "100 Gbit/s"
latency = "5us"

[link.bus]
scope = "intra"
bandwidth = "30 GB/s"
latency = "2us"

[cluster.lab]
device = "card"
nodes = 4
devices_per_node = 2
intra = "bus"
inter = "net"
nics_per_node = 1
oversubscription = 1.0
"""
STUDY = """\
model = "fcn5"
batch = 8
processes = ["1x1", "1x2"]
frameworks = ["torch-ddp"]
launches = 2
steps = 3
warmup_steps = 1
seed = 4
order = "random"
scaling = "weak"
precision = "fp32"
threads = [1]
instruments = ["none"]
no_sync = false
bucket_bytes = 1e6
"""
DESIGNED = """\
model = "fcn5"
launches = 2
warmup = "detect"
order = "blocked"
block_by = "batch"
[factors]
batch = [4, 8]
threads = [1]
bucket = ["1MiB", 2000000]
[design]
kind = "full"
[stopping]
half_width = "3 %"
launches = 9
time = "2h"
[limits]
time = "90s"
memory = "8GB"
"""
LAYERS = "id,name,forward_us,backward_us,comm_us,size\n" + "".join(
    f"{n},conv{n},{10 + n},{20 + n},{5 + n},{4000 * n}\n" for n in range(12)
)


def config_file(rng, folder):
    path = folder / "config.json"
    path.write_bytes(spoilt_json(rng, rng.choice(CONFIGS)))
    graph = load_user_model(str(path), ())
    graph.cost(4, graph.sequence).activation_bytes  # noqa: B018


def onnx_file(rng, folder):
    source = folder / "source.onnx"
    if not source.exists():
        exported.cnn(source)
        exported.attention(folder / "attention.onnx")
        recurrent(folder / "recurrent.onnx")
    path = folder / "fuzzed.onnx"
    kind = rng.choice((source, folder / "attention.onnx", folder / "recurrent.onnx"))
    path.write_bytes(spoilt_onnx(rng, kind.read_bytes()))
    load_user_model(str(path), ()).cost(4).activation_bytes  # noqa: B018


def recurrent(path):
    """An LSTM, whose inputs have ranks of their own."""
    weights = {"w": (1, 32, 4), "r": (1, 32, 8), "b": (1, 64)}
    node = onnx.helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h"], hidden_size=8)
    exported.save(path, [node], {"x": (onnx.TensorProto.FLOAT, (5, 2, 4))}, "y", weights)


def spoilt_onnx(rng, data):
    """A model whose parts were changed, each for itself; now and then its bytes."""
    if rng.random() < 0.1:
        return spoilt_bytes(rng, data)
    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        graph = model.graph
        node, weight = rng.choice(graph.node), rng.choice(graph.initializer)
        given = rng.choice(graph.input).type.tensor_type.shape.dim
        whole = rng.choice((0, 1, -1, 3, 2**31, 2**62))
        names = [name for one in graph.node for name in (*one.input, *one.output)]
        kinds = ["LSTM", "Conv", "MatMul", "Gather", "Reshape", "Softmax", "Nothing", "Einsum"]
        change = rng.randrange(9)
        if change == 0:
            node.op_type = rng.choice(kinds)
        elif change == 1 and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice([*names, "", "unknown"])
        elif change == 2 and node.input:
            del node.input[-1]
        elif change == 3 and node.output:
            node.output[0] = rng.choice(names)
        elif change == 4 and weight.dims:
            weight.dims[rng.randrange(len(weight.dims))] = whole
        elif change == 5 and given:
            rng.choice(given).dim_value = whole
        elif change == 6 and node.attribute:
            attribute = rng.choice(node.attribute)
            attribute.i = whole
            attribute.ints[:] = [whole] * rng.randrange(5)
        elif change == 7:
            graph.initializer.add().CopyFrom(weight)
        elif len(graph.node) > 1:
            del graph.node[rng.randrange(len(graph.node))]
    return model.SerializeToString()


def cluster_file(rng, folder):
    path = folder / "lab.toml"
    path.write_bytes(spoilt_toml(rng, CLUSTER))
    cluster = catalogue.cluster(f"{path}:lab")
    paceline.predict("fcn5", cluster, batch=4)


def study_file(rng, folder):
    path = folder / "study.toml"
    path.write_bytes(spoilt_toml(rng, rng.choice((STUDY, DESIGNED))))
    StudySettings.read(path).design()


def layer_table(rng, folder):
    path = folder / "layers.csv"
    path.write_bytes(spoilt_bytes(rng, LAYERS.encode()))
    read_layer_trace(path)
    paceline.predict(None, "dgx-a100", trace=str(path), nodes=1, processes=2)


HELLO = {"event": "hello", "time": 1.0, "rank": 0, "world": 1, "pid": 5, "versions": {"torch": "2"}}
WATCHED_STEP = {
    "step_seconds": 10.0,
    "cpu_seconds": 9.0,
    "delay_seconds": 0.5,
    "collection_seconds": 0.1,
    "segments": [["input", 0.0, 1.0], ["backward", 3.0, 7.0], ["update", 8.0, 10.0]],
    "messages": [["bucket", 100.0, 4.0, 5.0]],
    "fetches": 1,
    "samples": 8,
    "loss": None,
}
BUCKET = {"bytes": 100.0, "start_seconds": 1.0, "end_seconds": 2.0}
TIMELINE = {
    "input_seconds": 0.1,
    "forward_seconds": 1.0,
    "backward_seconds": 2.0,
    "update_seconds": 0.2,
    "step_seconds": 3.3,
    "buckets": [BUCKET],
}
LAYER = {"name": "l", "forward_seconds": 1.0, "backward_seconds": 2.0, "gradient_bytes": 40.0}
EVENTS = [
    HELLO,
    {"event": "watched", "time": 2.0, "steps": [WATCHED_STEP] * 3},
    {"event": "layers", "time": 2.5, "rank": 0, "layers": [LAYER]},
    {"event": "end", "time": 3.0, "rank": 0, "forks": 0, "memory": {"host_bytes": 5}},
]
WORKER_EVENTS = [
    HELLO,
    {"event": "ready", "time": 1.0, "rank": 0, "parameters": 5, "forward_flops": None},
    {"event": "steps", "time": 1.0, "rank": 0, "warmup_steps": 1, "wall_seconds": [1.0, 2.0],
     "cpu_seconds": [1.0, 2.0], "losses": [1.0, 2.0]},
    {"event": "timelines", "time": 1.0, "rank": 0, "steps": [TIMELINE, TIMELINE]},
    {"event": "parts", "time": 1.0, "rank": 0, "parts": {"forward": [1.0], "step": [2.0]}},
    {"event": "failure", "time": 1.0, "kind": "K", "message": "m", "place": "p:1"},
    {"event": "end", "time": 1.0, "rank": 0},
]  # fmt: skip


def watched_events(rng, folder):
    path = folder / "process-host-5.events.jsonl"
    lines = [json_text(event) for event in spoilt(rng, EVENTS) if event is not None]
    data = "\n".join(lines).encode()
    path.write_bytes(spoilt_bytes(rng, data) if rng.random() < 0.3 else data)
    job = watched_job(read_processes(folder))
    if job is not None:
        job.rank_steps()
        job.median_step(1)


def worker_events(rng, folder):
    path = folder / "rank-0.events.jsonl"
    data = "\n".join(json_text(event) for event in spoilt(rng, WORKER_EVENTS)).encode()
    path.write_bytes(spoilt_bytes(rng, data) if rng.random() < 0.3 else data)
    events = read_events(path)
    rank_steps(events)
    step_parts([events])
    measured_step([events])


STORE_COMMANDS = ("study list", "study list --launches --json", "study show b",
                  "study export e.csv", "study export e.csv --table steps",
                  "report s --out r.html", "explain s", "calibrate --no-probe")  # fmt: skip


def store_rows(rng, folder):
    path = folder / "store.db"
    if not path.exists():
        with Store(path) as store:
            for name in ("a1", "b2", "c3"):
                store.complete(a_launch(name, study="s", outcome=an_outcome()))
            store.save_design("s", {"jobs": [], "order": [], "seed": 1})
    for left in folder.glob("copy.db*"):
        left.unlink()
    copied = folder / "copy.db"
    copied.write_bytes(path.read_bytes())
    connection = sqlite3.connect(copied)
    with connection:
        _spoil_a_row(rng, connection)
    connection.close()
    line = rng.choice(STORE_COMMANDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacelineWarning)
        words = [*line.split(), "--store", str(copied)]
        CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)


SPOILT_COLUMNS = {
    "launches": "study created_at world_size nodes batch_per_rank precision warmup_steps owner "
    "job environment model",
    "outcomes": "status ended_at reason result result result",
}


def _spoil_a_row(rng, connection):
    table = rng.choice(tuple(SPOILT_COLUMNS))
    column = rng.choice(SPOILT_COLUMNS[table].split())
    value = connection.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchone()[0]
    if column in ("job", "environment", "result") and rng.random() < 0.9:
        written = spoilt_json(rng, json.loads(value)).decode(errors="replace")
    else:
        values = [one for one in VALUES if isinstance(one, str | float) and one == one]
        written = rng.choice(values)
    connection.execute(f"UPDATE OR REPLACE {table} SET {column} = ?", (written,))


LOG = next(path for path in SAMPLES if path.suffix in (".log", ".txt"))


def store_bytes(rng, folder):
    """A store with damaged pages, those of its schema too; one command writes."""
    path = folder / "whole.db"
    if not path.exists():
        with Store(path) as store:
            for name in ("a1", "b2", "c3"):
                store.complete(a_launch(name, study="s", outcome=an_outcome()))
    for left in folder.glob("bytes.db*"):
        left.unlink()
    data = bytearray(path.read_bytes())
    first = rng.choice((0, 0, 100, len(data) // 2))  # the header and schema are at the beginning
    for _ in range(rng.choice((1, 3, 20, 200))):
        data[rng.randrange(first, min(len(data), first + 6000))] = rng.randrange(256)
    if rng.random() < 0.2:
        data = bytearray(spoilt_bytes(rng, bytes(data)))
    copied = folder / "bytes.db"
    copied.write_bytes(data)
    line = rng.choice((*STORE_COMMANDS, f"import {LOG} --study t"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacelineWarning)
        words = [*line.split(), "--store", str(copied)]
        CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)


def prepared_study(rng, folder):
    """The directory of a prepared study that ran; files of any launch are damaged."""
    if "quick" not in frameworks():
        frameworks()["quick"] = quick.ADAPTER
    whole = folder / "prepared"
    if not whole.exists():
        design = Design.randomised([quick.job(world_size=2), quick.job(resources=True)], 1, 1)
        prepare_study(design, "far", whole, 60.0)
        subprocess.run(
            [whole / "launches.sh"], check=True, timeout=HANG_SECONDS, capture_output=True
        )
        shutil.rmtree(whole / "workers")
    damaged, store = folder / "damaged", folder / "collected.db"
    for left in (damaged, folder / "launches"):
        shutil.rmtree(left, ignore_errors=True)
    for left in folder.glob("collected.db*"):
        left.unlink()
    shutil.copytree(whole, damaged)
    files = [path for path in damaged.rglob("*") if path.is_file() and "agent" not in path.parts]
    for path in rng.sample(files, rng.choice((1, 1, 2, 4))):
        _damage(rng, path)
    words = ["measure", "--collect", str(damaged), "--store", str(store)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacelineWarning)
        for line in (words, ["study", "list", "--launches", "--json", "--store", str(store)],
                     ["report", "far", "--out", str(folder / "r.html"), "--store", str(store)],
                     ["explain", "far", "--store", str(store)]):  # fmt: skip
            try:
                CliRunner().invoke(cli, line, catch_exceptions=False, standalone_mode=False)
            except PacelineError as error:
                assert error.message
    for launch in damaged.glob("launch-*"):
        check_launch(launch)


def _damage(rng, path):
    action = rng.random()
    if action < 0.1:
        path.unlink()
        if rng.random() < 0.5:
            os.mkfifo(path)
    elif action < 0.7:
        lines = path.read_bytes().splitlines() or [b""]
        number = rng.randrange(len(lines))
        try:
            lines[number] = spoilt_json(rng, json.loads(lines[number]))
        except ValueError:
            lines[number] = spoilt_bytes(rng, lines[number])
        path.write_bytes(b"\n".join(lines))
    else:
        path.write_bytes(spoilt_bytes(rng, path.read_bytes()))


def dataset(rng, folder):
    """NumPy archives, CIFAR-10 files, images and the digits, as workers read them."""
    source = folder / "data"
    if not source.exists():
        source.mkdir()
        pixels = np.zeros((4, 3, 8, 8), np.uint8)
        np.savez(source / "plain.npz", x=pixels, y=np.arange(4))
        np.savez_compressed(source / "packed.npz", x=pixels.astype("f4"), y=np.arange(4))
        (source / "data_batch_1.bin").write_bytes(bytes(3073 * 3))
        digits = (f"{','.join(['3'] * 64)},{n % 10}\n" for n in range(20))
        (source / "digits.csv.gz").write_bytes(gzip.compress("".join(digits).encode()))
        for name in ("png", "jpg", "gif", "bmp", "tiff", "webp"):
            Image.new("RGB", (8, 8), "red").save(source / f"image.{name}")
    original = rng.choice(sorted(source.iterdir()))
    damaged = folder / "damaged-data" / "class"
    shutil.rmtree(damaged.parent, ignore_errors=True)
    damaged.mkdir(parents=True)
    path = damaged / original.name
    path.write_bytes(spoilt_bytes(rng, original.read_bytes()))
    kind, given = {
        ".npz": ("npz", path),
        ".bin": ("cifar10", damaged),
        ".gz": ("digits", path),
    }.get(original.suffix, ("image_folder", damaged.parent))
    try:
        found = datasets.load(kind, str(given))
        found.batch(range(min(2, len(found))))
    except datasets.DatasetError as error:
        raise InputError(str(error)) from None


def package(rng, folder):
    """A package of a study from somebody else, of which any file is damaged."""
    whole, damaged = folder / "package", folder / "damaged-package"
    if not whole.exists():
        with Store(folder / "packaged.db") as store:
            store.complete(a_launch("a1", study="s", outcome=an_outcome()))
        package_study("s", store=folder / "packaged.db", out=whole)
        shutil.rmtree(whole / "figures", ignore_errors=True)
    shutil.rmtree(damaged, ignore_errors=True)
    shutil.copytree(whole, damaged)
    named = [damaged / name for name in ("store.db", "package.json", "SHA256SUMS")]
    files = [path for path in damaged.rglob("*") if path.is_file()]
    for path in {rng.choice(named), rng.choice(files)}:
        _damage(rng, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacelineWarning)
        verify_package(damaged)


def upload(rng, folder):
    """A file that a browser uploads to the explorer."""
    document = rng.choice((rng.choice(CONFIGS), quick.GRAPH))
    name = rng.choice(("config.json", "graph.json", "model.onnx", "x.py", "\u202e.json"))
    content = spoilt_json(rng, document)
    if name.endswith(".onnx"):
        source = folder / "upload.onnx"
        if not source.exists():
            exported.cnn(source)
        content = spoilt_onnx(rng, source.read_bytes())
    Uploads().add(name, content)


READERS = {
    "config.json": (config_file, 2500),
    "ONNX": (onnx_file, 1200),
    "cluster TOML": (cluster_file, 1500),
    "study TOML": (study_file, 1000),
    "layer CSV": (layer_table, 1000),
    "watched events": (watched_events, 2000),
    "worker events": (worker_events, 1600),
    "store rows": (store_rows, 1500),
    "store bytes": (store_bytes, 1500),
    "prepared study": (prepared_study, 300),
    "dataset": (dataset, 1500),
    "package": (package, 300),
    "upload": (upload, 1000),
}
"""Readers, and how many inputs each gets with --all; logs and traces get 4,000 more."""


@contextmanager
def limited():
    """An error where something takes too long."""

    def late(number, frame):
        raise AssertionError(f"it took more than {SECONDS} s of CPU, or {WAITING_SECONDS} s")

    both = (signal.SIGPROF, signal.SIGALRM)
    before = [signal.signal(number, late) for number in both]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(WAITING_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for number, handler in zip(both, before, strict=True):
            signal.signal(number, handler)


def peak_megabytes() -> int:
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024


def test_the_samples_themselves_are_read(tmp_path):
    path = tmp_path / "lab.toml"
    path.write_text(CLUSTER)
    paceline.predict("fcn5", catalogue.cluster(f"{path}:lab"), batch=4)
    path.write_text(STUDY)
    assert len(StudySettings.read(path).design().order) == 4
    path.write_text(DESIGNED)
    assert StudySettings.read(path).design().order
    for config in CONFIGS:
        (tmp_path / "config.json").write_text(json.dumps(config))
        load_user_model(str(tmp_path / "config.json"), ())
    (tmp_path / "layers.csv").write_text(LAYERS)
    assert len(read_layer_trace(tmp_path / "layers.csv").layers) == 12
    events = "\n".join(map(json.dumps, EVENTS))
    (tmp_path / "process-h-1.events.jsonl").write_text(events)
    assert watched_job(read_processes(tmp_path)) is not None


@pytest.mark.parametrize("kind", READERS)
def test_a_damaged_input_is_one_line(kind, size, tmp_path, monkeypatch):
    attack, whole = READERS[kind]
    monkeypatch.setattr(launch_files, "COLLECTING_SECONDS", 0.0)
    before, slowest, refused = peak_megabytes(), 0.0, 0
    wrong: list[str] = []
    number_of_inputs = size(max(10, whole // 100), whole)
    for number in range(number_of_inputs):
        rng, begun = random.Random(number), time.process_time()
        try:
            with limited():
                attack(rng, tmp_path)
        except PacelineError as error:
            refused += 1
            if not error.message or "\n" in error.message.strip()[:400]:
                wrong.append(f"input {number}: {error.message!r:.300}")
        except Exception as error:
            traceback.print_exc()
            wrong.append(f"input {number}: {error!r:.300}")
        slowest = max(slowest, time.process_time() - begun)
    more = peak_megabytes() - before
    print(f"{kind}: {number_of_inputs} inputs, {refused} refused, {slowest:.1f} s, {more} MB")
    assert not wrong, "\n".join(wrong[:20])
    assert more < MEGABYTES


def test_logs_and_traces(size, tmp_path):
    fuzz_logs_and_traces(range(100_000, 100_000 + size(60, 4000)), tmp_path)
