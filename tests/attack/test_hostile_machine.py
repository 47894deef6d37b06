"""A machine that misbehaves: clock steps, limits, permissions, full and read-only disks.

Also other users' stores, two runners of one store, strangers on the port of the rendezvous, agents
that are killed while they write, and long studies that are interrupted.
"""

import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress

import pytest
from builders import a_launch, an_outcome
from measurement import quick

from attack.nasty import HANG_SECONDS
from attack.test_kills import VICTIMS, check_nobody_is_left, check_whole, finished
from paceline.launch import launch_files
from paceline.launch.onhost.addresses import free_port
from paceline.launch.onhost.barrier import join_barrier, serve_barrier
from paceline.measurement.dry_run import collect_study, prepare_study
from paceline.measurement.study_design import Design
from paceline.store import Status, Store

pytestmark = pytest.mark.process
ROOT = os.geteuid() == 0
OTHER_USER = 65534
COMPILER = shutil.which("cc")
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    char text[32] = {0};
    int file = open(getenv("CLOCK_FILE"), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
    close(file);
    return atol(text);
}

int clock_gettime(clockid_t id, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, out);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) out->tv_sec += offset();
    return code;
}
int gettimeofday(struct timeval *out, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec; out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""
"""Sets the clock of the day only, as an administrator or NTP does. libfaketime also changes
CLOCK_MONOTONIC or breaks clock_nanosleep, which no clock step does."""
needs_root = pytest.mark.skipif(not ROOT, reason="needs root: mounts, and other users")


def paceline(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "paceline", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        **options,
    )


def is_one_error(answer):
    """Exit code 2 with a message and a hint, and no traceback."""
    return answer.returncode == 2 and answer.stderr.startswith("error: ") and "hint: " in (
        answer.stderr
    ) and "Traceback" not in answer.stderr  # fmt: skip


def a_store(folder, killed=False):
    """A store with three launches; of a killed writer they are in the write-ahead log."""
    path, process = folder / "store.db", os.fork() if killed else 0
    if process == 0:
        with Store(path) as store:
            for name in ("a1", "b2", "c3"):
                store.complete(a_launch(name, study="s", outcome=an_outcome()))
            if killed:
                os.kill(os.getpid(), signal.SIGKILL)
    else:
        os.waitpid(process, 0)
    assert killed is (folder / "store.db-wal").exists()
    return path


READERS = (
    "study list --launches",
    "study show s",
    "study export {out}/e.csv",
    "report s --out {out}/r.html",
    "explain s",
    "explore --export {out}/site --study s",
    "calibrate --no-probe",
)


def check_readers(path, out, call=paceline):
    """All readers work and count three launches; nothing is written next to the store."""
    before = {one: one.stat().st_mtime_ns for one in path.parent.iterdir()}
    for line in READERS:
        answer = call(*line.format(out=out).split(), "--store", path)
        assert answer.returncode in (0, 2), (line, answer.stderr)
        assert "Traceback" not in answer.stderr
        assert line.startswith("calibrate") or answer.returncode == 0, (line, answer.stderr)
        if line.startswith("study list"):
            assert "3 of 3 launches" in answer.stdout
    kept = {one: one.stat().st_mtime_ns for one in path.parent.iterdir() if one in before}
    assert kept.keys() == before.keys()
    assert kept[path] == before[path]


@contextmanager
def mounted(folder, *options):
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", *options, "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@needs_root
@pytest.mark.parametrize("killed", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("medium", ["full", "read-only"])
def test_a_store_is_read_where_nothing_can_be_written(medium, killed, tmp_path):
    (tmp_path / "from").mkdir()
    (tmp_path / "out").mkdir()
    source = a_store(tmp_path / "from", killed)
    with mounted(tmp_path / "disk", "-o", "size=600k") as disk:
        for path in source.parent.glob("store.db*"):
            if not path.name.endswith("-shm"):
                shutil.copyfile(path, disk / path.name)
        if medium == "full":
            with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(1024))
        else:
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        check_readers(disk / "store.db", tmp_path / "out")
        answer = paceline("run", "--store", disk / "store.db", "--", "true")
        assert is_one_error(answer), answer.stderr


UNPRIVILEGED = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"]
"""Runs a command without root's right to ignore permissions; it can still run our interpreter."""


def unprivileged(*words, **options):
    command = [*UNPRIVILEGED, sys.executable, "-m", "paceline", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, **options)


@needs_root
@pytest.mark.slow
def test_a_foreign_store_is_read_or_refused_in_one_line(tmp_path):
    """A store of another user: without permission, in a closed directory, and readable."""
    foreign, out = tmp_path / "foreign", tmp_path / "out"
    foreign.mkdir()
    out.mkdir()
    path = a_store(foreign)
    for one in (foreign, *foreign.rglob("*")):
        os.chown(one, OTHER_USER, OTHER_USER)
    for mode_of_folder, mode in ((0o755, 0o600), (0o700, 0o644)):
        foreign.chmod(mode_of_folder)
        path.chmod(mode)
        for line in (*READERS, "run -- true", "study rename s t", "measure --resume s"):
            words = line.format(out=out).split()
            at = words.index("--") if "--" in words else len(words)
            words[at:at] = ["--store", str(path)]
            answer = unprivileged(*words)
            assert is_one_error(answer), (line, answer.stderr)
    foreign.chmod(0o755)
    path.chmod(0o644)
    check_readers(path, out, call=unprivileged)
    assert is_one_error(unprivileged("run", "--store", path, "--", "true"))


def test_a_reader_does_not_make_a_vanished_store_again(tmp_path):
    from paceline.explore.studies import MeasuredStudies

    path = a_store(tmp_path)
    studies = MeasuredStudies(path)
    assert studies.names() == ["s"]
    path.unlink()
    assert studies.names() == [] and studies.launches("s") == []
    assert not path.exists()


def compiled(source, library):
    """A library that replaces functions of libc in a process."""
    command = [str(COMPILER), "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", library, "-ldl"]
    subprocess.run(command, input=source.encode(), check=True)
    return library


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_clock_steps_change_no_result(size, tmp_path):
    """The clock of the day jumps by hours and years, forwards and back, while a study runs."""
    clock, stop = tmp_path / "clock", threading.Event()
    library = compiled(CLOCK, tmp_path / "clock.so")
    clock.write_text("0")
    environment = {**os.environ, "LD_PRELOAD": str(library), "CLOCK_FILE": str(clock)}
    dates = ("0", "3600", "-3600", "315000000", "-315000000", "-86400")

    def step_the_clock():
        rng = random.Random(0)
        while not stop.wait(rng.uniform(0.05, 0.5)):
            part = clock.with_suffix(".part")
            part.write_text(rng.choice(dates))
            part.replace(clock)

    stepper = threading.Thread(target=step_the_clock)
    stepper.start()
    try:
        for number in range(size(1, 5)):
            store = tmp_path / f"{number}.db"
            command = [sys.executable, VICTIMS, "measure", store]
            assert subprocess.run(command, env=environment, timeout=HANG_SECONDS).returncode == 0
            with Store(store) as opened:
                launches = opened.launches("study")
            assert Counter(one.status for one in launches) == {Status.FINISHED: 8}
            for launch in launches:
                assert 0 <= launch.outcome.facts["seconds"] < 60
                for rank in launch.outcome.ranks:
                    assert all(0 <= seconds < 10 for seconds in rank.wall_seconds)
    finally:
        stop.set()
        stepper.join()


def test_two_studies_of_one_store_run_at_once(tmp_path):
    store = tmp_path / "store.db"
    runners = [
        subprocess.Popen([sys.executable, VICTIMS, "measure", store, name]) for name in ("a", "b")
    ]
    assert [runner.wait(timeout=HANG_SECONDS) for runner in runners] == [0, 0]
    check_whole(store)
    with Store(store) as opened:
        for name in ("a", "b"):
            positions = [one.job["position"] for one in opened.launches(name)]
            assert Counter(positions) == Counter(range(8))


@pytest.mark.parametrize("files", [10, 12, 16, 24, 40])
def test_a_limit_of_files_is_one_line(files, tmp_path):
    """Below the number that Python itself needs, it does not start."""
    path = a_store(tmp_path)

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    for words in (["study", "list"], ["run", "--", sys.executable, "-c", "pass"]):
        at = words.index("--") if "--" in words else len(words)
        words[at:at] = ["--store", path]
        answer = paceline(*words, preexec_fn=limit)
        if "paceline" in answer.stderr or not answer.stderr:
            assert answer.returncode in (0, 1, 2)
        assert "Traceback" not in answer.stderr or "paceline" not in answer.stderr, answer.stderr
    check_whole(path)


NO_FORK = """
#include <errno.h>
#include <sys/types.h>
pid_t fork(void) { errno = EAGAIN; return -1; }
pid_t vfork(void) { errno = EAGAIN; return -1; }
"""


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_a_limit_of_processes_is_one_line(tmp_path):
    """With fork refused, as at the limit of ``ulimit -u``, the store stays whole."""
    library = compiled(NO_FORK, tmp_path / "no_fork.so")
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    store = a_store(tmp_path)
    answer = paceline("run", "--store", store, "--", sys.executable, "-c", "1", env=environment)
    assert is_one_error(answer), answer.stderr
    assert "ulimit -u" in answer.stderr
    assert paceline("study", "list", "--store", store, env=environment).returncode == 0
    check_whole(store)


@needs_root
@pytest.mark.slow
def test_permissions_that_change_lose_no_finished_launch(tmp_path):
    """The directory of the store becomes read-only, again and again, while a study runs."""
    folder = tmp_path / "store"
    folder.mkdir()
    store, rng = folder / "store.db", random.Random(0)
    command = [*UNPRIVILEGED, sys.executable, VICTIMS, "measure", store]
    known: set[str] = set()
    for _ in range(12):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(rng.uniform(0.5, 2.5))
        folder.chmod(0o500)
        time.sleep(0.5)
        folder.chmod(0o700)
        _, said = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode in (0, 1, 2), said
        now = finished(store)
        assert known <= now
        known = now
        if process.returncode == 0:
            break
    check_whole(store)
    with Store(store) as opened:
        done = [one for one in opened.launches("study") if one.status is Status.FINISHED]
    assert Counter(one.job["position"] for one in done) == Counter(range(8))


@pytest.mark.parametrize(
    "noise", [b"", b"\n", b"{}\n", b"[1]\n", b"\x00\xff" * 40_000, b'{"token": 1}\n']
)
def test_strangers_at_the_rendezvous_are_ignored(noise, monkeypatch):
    """They connect, send anything or nothing, and keep the connection open."""
    place = "127.0.0.1", free_port("127.0.0.1")
    own = {"ranks": [0], "host": "a", "boot": "x"}
    came: list[object] = []
    begun = time.monotonic()
    server = threading.Thread(
        target=lambda: came.append(serve_barrier(place, own, 2, "secret", 60.0))
    )
    server.start()
    strangers = []
    for _ in range(30):
        while True:
            with suppress(OSError):
                strangers.append(socket.create_connection(place, timeout=5))
                break
            assert time.monotonic() < begun + 30
        with suppress(OSError):
            strangers[-1].sendall(noise)
    present, _ = join_barrier(place, {"ranks": [1], "host": "b", "boot": "y"}, "secret", 60.0)
    server.join(timeout=30)
    assert came == [present] and [one["host"] for one in present] == ["a", "b"]
    assert time.monotonic() < begun + 30  # they do not delay the launch
    for stranger in strangers:
        stranger.close()


@pytest.mark.usefixtures("quick_framework")
def test_agents_that_are_killed_while_they_write_give_no_results(size, tmp_path, monkeypatch):
    """A host dies: its files end anywhere. A launch is finished only if all of them are whole."""
    monkeypatch.setattr(launch_files, "COLLECTING_SECONDS", 0.0)
    count = size(3, 40)
    job = quick.job(world_size=2, steps=200)
    prepare_study(Design.randomised([job], count, 1), "far", tmp_path / "d", 60.0)
    rng = random.Random(0)
    for number in range(count):
        folder = tmp_path / "d" / f"launch-{number:04d}"
        environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "1"}
        agent = subprocess.Popen(
            [sys.executable, "-I", "-S", folder / "agent", folder],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            agent.wait(timeout=rng.uniform(0.2, 1.5))
        with suppress(ProcessLookupError):
            os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()
        for path in folder.glob("rank-*"):  # what the disk had of the last write
            if rng.random() < 0.3:
                with path.open("r+b") as file:
                    file.truncate(rng.randrange(path.stat().st_size + 1))
    check_nobody_is_left(tmp_path)
    with Store(tmp_path / "s.db") as store:
        collect_study(tmp_path / "d", store)
        for launch in store.launches("far"):
            steps = [rank.wall_seconds for rank in launch.outcome.ranks]
            if launch.status is Status.FINISHED:
                assert len(steps) == 2 and len(steps[0]) == len(steps[1]) == 200
            else:
                assert launch.outcome.reason


@pytest.mark.parametrize(
    "variables",
    [{"RANK": "x"}, {"RANK": "-1", "WORLD_SIZE": "2"}, {"RANK": "0", "WORLD_SIZE": "10" * 3000},
     {"RANK": "\u0663", "WORLD_SIZE": "2"}, {"SLURM_PROCID": ""}, {"PMI_RANK": "1e400"}],
)  # fmt: skip
@pytest.mark.usefixtures("quick_framework")
def test_a_worker_with_wrong_variables_is_one_line(variables, tmp_path):
    design = Design.randomised([quick.job(world_size=2)], 1, 1)
    prepare_study(design, "far", tmp_path / "d", 60.0)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RANK")}
    answer = paceline("worker", tmp_path / "d" / "launch-0000", env={**kept, **variables})
    assert is_one_error(answer), answer.stderr


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "paceline/launch/1"}', '{"schema": 1}', "[" * 100_000]
)
def test_a_damaged_launch_is_one_line(text, tmp_path):
    (tmp_path / "launch.json").write_text(text)
    answer = paceline("worker", tmp_path, env={**os.environ, "RANK": "0", "WORLD_SIZE": "1"})
    assert is_one_error(answer), answer.stderr


def outcomes(store):
    """Number of launches that ended; counted in the store, because reading 10,000 takes seconds."""
    if not store.exists() or store.stat().st_size == 0:
        return 0
    with Store(store) as opened:
        return opened.rows("SELECT count(*) FROM outcomes")[0][0]


def test_a_long_study_that_is_interrupted_runs_each_position_once(size, tmp_path):
    """10,000 launches with --all; its runner is killed at random, and each time resumed."""
    store, launches, rng = tmp_path / "store.db", size(200, 10_000), random.Random(0)
    kills, known = 0, 0
    command = [sys.executable, VICTIMS, "long", store, str(launches)]
    for _ in range(200):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60  # on a busy machine Python takes seconds to start
        while process.poll() is None and outcomes(store) <= known and time.monotonic() < end:
            time.sleep(0.1)
        with suppress(subprocess.TimeoutExpired):
            assert process.wait(timeout=rng.uniform(0.0, size(0.3, 15))) == 0
            break
        process.send_signal(rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
        process.wait(timeout=HANG_SECONDS)
        kills += 1
        now = outcomes(store)
        assert now >= known
        known = now
    else:
        raise AssertionError("the study did not end")
    check_whole(store)
    with Store(store) as opened:
        rows = opened.rows(
            "SELECT json_extract(job, '$.position') FROM launches JOIN outcomes "
            "ON launch_id = id WHERE status = 'finished'"
        )
    assert Counter(position for (position,) in rows) == Counter(range(launches))
    print(f"{launches} launches, {kills} interrupts")
