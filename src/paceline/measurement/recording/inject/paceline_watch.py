"""Records the steps of a training process from the inside, with the standard library only.

`Recorder` collects what happens within a step and writes it as JSON lines; `start` makes it
watch PyTorch as soon as the script imports it (see `paceline_watch_torch`). The events are
described in ``protocol.md`` under "Watched processes". Runs on Python 3.8 and later, in the
script's own interpreter, which need not have Paceline.
"""

from __future__ import annotations

import atexit
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import os
import platform
import sys
import threading
import time
import traceback
from typing import Any, Callable


def load_thread_states() -> Any:
    """The module of the workers that reads states of threads; it has no importable package here."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(here, *[os.pardir] * 3, "frameworks", "runtime", "thread_states.py")
    spec = importlib.util.spec_from_file_location("paceline_thread_states", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


thread_states = load_thread_states()
FLUSH_SECONDS = 1.0
LAST_WORDS_BYTES = 2000
MARKS_APART_SECONDS = 1e-4
"""Readings of the thread's times that are closer cost time and add nothing."""
THREADS_END_SECONDS = 0.05
"""Delay before the interpreter exits: Gloo's threads abort a process that exits while they release
their last message (PyTorch 2.13: 4 of 100 processes; with 0.01 s or more none of 200)."""
clock = time.perf_counter


def since_boot() -> float:
    """Seconds since boot: common to all processes of this machine, and cannot be set."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


_LOADED = since_boot()


def process_began() -> float:
    """Start of this process by `since_boot`; if unknown, the time of our import."""
    try:
        with open("/proc/self/stat", "rb") as file:
            # Field 22 of proc(5), counted after the command name, which may contain blanks.
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        return ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return _LOADED


def boot_name() -> str:
    """Identifier of the current boot of this machine."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return platform.node()


active: Recorder | None = None
"""Recorder of this process, if it is watched."""


def mark(samples: int = 0, loss: Any = None) -> None:
    """End a training step of a script that does not use ``torch.optim``; nothing if not watched.

    The first call begins the first step. ``samples`` is the number of samples of this process.
    """
    if active is None:
        return
    if not active.steps_by_hand or active.begun is None:
        active.steps_by_hand = True
        active.hello()
        active.begin(clock())
        return
    active.samples += samples
    active.end_step(clock(), loss)


class Recorder:
    """Steps of this process: start, end and segments of each.

    A segment is (phase, start, end) in readings of `clock`; a message is [operation, bytes,
    start, end], whose end is set on its arrival. A mark is (moment, seconds on a core, seconds
    runnable) of the training thread: between two marks, the rest of the time is blocked. With
    ``steps_by_hand`` the script marks the end of steps itself (`paceline.record`).
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.steps_by_hand = False
        self.after_fork()

    def after_fork(self) -> None:
        """Reset the state in a forked child."""
        self.pid = os.getpid()
        name = f"process-{platform.node()}-{self.pid}-{process_began():.2f}.events.jsonl"
        self.path = os.path.join(self.directory, name)
        self.forks = 0
        self.closed = self.said_hello = False
        self.step_count = 0
        self.begun: float | None = None
        self.cpu_begun = 0.0
        self.thread = 0
        self.thread_clock: Any = None
        self.core_use: Any = None
        self.stacks: Any = None
        self.loader_workers = 0
        self.worker_numbers: list[int] = []
        self.job_facts: dict[str, Any] = {}
        self.in_engine = False
        self.buffer: list[tuple[Any, ...]] = []
        self.layers: Callable[[], list[dict[str, Any]]] | None = None
        self.flushed = clock()
        self._clear_step()

    def _clear_step(self) -> None:
        self.segments: list[tuple[str, float, float]] = []
        self.messages: list[list[Any]] = []
        self.marks: list[tuple[float, float, float]] = []
        self.fetches = self.samples = self.elements = self.computed = 0
        self.collecting: float | None = None
        self.collection_seconds = 0.0

    def segment(self, phase: str, start: float, end: float) -> None:
        if self.begun is None:
            self.begin(start)
        self.segments.append((phase, start, end))
        self.mark(end)

    def mark(self, moment: float) -> None:
        """Read the times of the training thread; other threads have no marks."""
        if self.marks and moment - self.marks[-1][0] < MARKS_APART_SECONDS:
            return
        if self.thread_clock is not None and threading.get_ident() == self.thread:
            times = self.thread_clock.read(moment)
            if times is not None:
                self.marks.append((moment, *times))

    def message(self, operation: str, size: float, start: float) -> list[Any]:
        """Record a sent message; the caller sets the last element on its arrival."""
        if self.begun is None:
            self.begin(start)
        record = [operation, size, start, None]
        self.messages.append(record)
        return record

    def fetched(self, start: float, end: float, samples: int, elements: int = 0) -> None:
        """Record a batch from a data loader."""
        self.segment("input", start, end)
        self.fetches += 1
        self.samples += samples
        self.elements += elements

    def collection(self, stage: str, _: Any) -> None:
        """Record a garbage collection by its CPU time: it does not count waits for a core."""
        if stage == "start":
            self.collecting = time.thread_time()
        elif self.collecting is not None:
            self.collection_seconds += time.thread_time() - self.collecting
            self.collecting = None

    def begin(self, moment: float) -> None:
        self.begun = moment
        self.cpu_begun = time.process_time()
        self.watch_thread()
        self.mark(moment)

    def watch_thread(self) -> None:
        """Read the times of the thread that begins a step from now on."""
        if self.thread == threading.get_ident():
            return
        if self.thread_clock is not None:
            self.thread_clock.close()
        if self.stacks is not None:
            self.stacks.stop()
        self.thread, self.thread_clock = threading.get_ident(), thread_states.ThreadClock()
        self.stacks = start_sampler()
        self.core_use = thread_states.CoreUse(getattr(self.stacks, "native_id", None))

    def end_step(self, moment: float, loss: Any = None) -> None:
        """End the step at ``moment`` and begin the next one.

        ``loss`` may be a tensor: it is read when steps are written, since reading blocks on a GPU.
        """
        loss = getattr(loss, "detach", lambda: loss)()
        begun = moment if self.begun is None else self.begun
        cpu = time.process_time()
        self.mark(moment)
        if self.stacks is not None and self.stacks.loop is None and self.step_count:
            self.stacks.see_loop()
        last = self.marks[-1:]
        self.buffer.append(
            (
                begun,
                moment,
                cpu - self.cpu_begun,
                self.marks,
                self.collection_seconds,
                self.segments,
                self.messages,
                self.fetches,
                self.samples,
                self.computed or self.elements,  # a script may change what its loader returns
                loss,
                [] if self.stacks is None else self.stacks.take(),
            )
        )
        self.step_count += 1
        self.begun, self.cpu_begun = moment, cpu
        self._clear_step()
        self.marks += last
        if moment - self.flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self, everything: bool = False) -> None:
        """Write the steps so far; messages of the last one may still be in flight."""
        # The end of a message is set on its arrival: the last step is kept until the next flush.
        ready = len(self.buffer) if everything else max(0, len(self.buffer) - 1)
        written, self.buffer = self.buffer[:ready], self.buffer[ready:]
        self.flushed = clock()
        if written:
            self.hello()
            steps = ",".join(map(step_as_json, written))
            self.write("watched", f', "steps": [{steps}]', **self.since_last())

    def since_last(self) -> dict[str, Any]:
        """Facts about all steps since the last write."""
        facts: dict[str, Any] = {"loader_workers": self.loader_workers, **self.job_facts}
        facts["compute_threads"] = thread_states.compute_threads()
        if self.core_use is not None:
            facts.update(self.core_use.since_last(self.worker_numbers))
        delay = (facts.get("threads") or {}).get(thread_states.MESSAGES)
        return facts if delay is None else {**facts, "message_delay_seconds": delay[2]}

    def hello(self) -> None:
        """Write the identity of this process, once."""
        if not self.said_hello:
            self.said_hello = True
            rank, world = rank_and_world()
            self.write(
                "hello",
                rank=rank,
                world=world,
                local_world=local_world(),
                pid=self.pid,
                boot=boot_name(),
                versions=versions(),
                cores=allowed_cores(),
                arguments=sys.argv[:50],
            )

    def write(self, event: str, encoded: str = "", **fields: Any) -> None:
        """Append one event to the file of this process; a full disk must not end the training.

        ``encoded`` are more fields, already as JSON.
        """
        written = {"event": event, "time": time.time(), "moment": since_boot(), **fields}
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(written)[:-1] + encoded + "}\n")
        except (OSError, TypeError, ValueError) as error:
            print(f"paceline: an event was lost: {error!r}", file=sys.stderr)

    def close(self) -> None:
        """Write the remaining steps; called at the end of the process."""
        if self.closed or os.getpid() != self.pid:  # a forked child inherits the atexit handler
            return
        self.closed = True
        if self.stacks is not None:
            self.stacks.stop()
        self.flush(everything=True)
        if self.step_count:
            rank, _ = rank_and_world()
            if self.layers is not None:
                self.write("layers", rank=rank, layers=self.layers())
            self.write("end", rank=rank, forks=self.forks, memory=peak_memory())
        if "torch.distributed" in sys.modules:
            time.sleep(THREADS_END_SECONDS)

    def failed(self, kind: type, error: BaseException, trace: Any) -> None:
        self.hello()
        frames = traceback.extract_tb(trace)
        place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
        message = str(error).strip()[:LAST_WORDS_BYTES]
        self.write("failure", kind=kind.__name__, message=message, place=place)


def step_as_json(step: tuple[Any, ...]) -> str:
    """One step as JSON, with times in seconds from its beginning.

    Formatting takes a third of the CPU time of ``json.dumps``, which writes 17 digits of each time.
    """
    t, end, cpu, marks, collection, segments, messages, fetches, samples, elements, loss, lines = (
        step
    )
    fields = [
        f'"begun":{t:.7f},"step_seconds":{end - t:.7f},"cpu_seconds":{cpu:.7f}',
        f'"collection_seconds":{collection:.7f},"fetches":{fetches},"samples":{samples}',
        f'"elements":{elements},"loss":{"null" if loss is None else json.dumps(as_number(loss))}',
        json_rows("segments", [f'"{name}",{a - t:.7f},{b - t:.7f}' for name, a, b in segments]),
        json_rows(
            "messages",
            [
                f'"{name}",{size:.0f},{a - t:.7f},{(end if b is None else b) - t:.7f}'
                for name, size, a, b in messages
            ],
        ),
        json_rows(
            "stacks", [f"{at - t:.7f},{off:d},{json.dumps(x)},{y:d}" for at, off, x, y in lines]
        ),
    ]
    if len(marks) > 1:
        _, on, late = marks[0]
        # One template for all marks is faster than one for each.
        rows = ",".join(["[%.7f,%.7f,%.7f]"] * len(marks))
        times = [x for at, ran, waited in marks for x in (at - t, ran - on, waited - late)]
        delay = max(0.0, marks[-1][2] - late)
        fields.append(f'"marks":[{rows % tuple(times)}],"delay_seconds":{delay:.7f}')
    return "{" + ",".join(fields) + "}"


def json_rows(name: str, rows: list[str]) -> str:
    """A field of a JSON object whose value is a list of these lists."""
    return f'"{name}":[[{"],[".join(rows)}]]' if rows else f'"{name}":[]'


def start_sampler() -> Any:
    """A running sampler of this thread's stack; None if it cannot start."""
    try:
        from paceline_watch_stacks import StackSampler

        sampler = StackSampler()
        sampler.start()
    except (ImportError, AttributeError, RuntimeError):
        return None
    return sampler


def as_number(loss: Any) -> float | None:
    """A loss as a finite number; None if it cannot be converted."""
    try:
        value = float(loss)
    except Exception:
        return None
    return value if math.isfinite(value) else None


def rank_and_world() -> tuple[int, int]:
    """Rank and world size from PyTorch's process group or the variables of the launcher."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except (AttributeError, RuntimeError, ValueError):
        pass
    for rank, world in (
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ):
        if os.environ.get(rank, "").isdecimal() and os.environ.get(world, "").isdecimal():
            return int(os.environ[rank]), int(os.environ[world])
    return 0, 1


def local_world() -> int:
    """Number of ranks on this node from the variables of the launcher; 0 if unknown."""
    for name in ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"):
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    return 0


def versions() -> dict[str, str]:
    """Versions of the interpreter and of loaded frameworks."""
    found = {"python": sys.version.split()[0]}
    for name in ("torch", "tensorflow", "jax", "mxnet", "horovod", "deepspeed"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found


def allowed_cores() -> list[int]:
    """Cores that this process may run on; empty if unknown."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def peak_memory() -> dict[str, int]:
    """Peak bytes of host memory, and of the current GPU if PyTorch used one."""
    found = {}
    try:
        import resource

        found["host_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    except ImportError:
        pass
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        found["device_bytes"] = cuda.max_memory_allocated()
    return found


class PatchAfterImport(importlib.abc.MetaPathFinder):
    """Calls a function on a module right after its import, before other code uses it."""

    def __init__(self, patches: dict[str, Callable[[Any], None]]) -> None:
        self.patches = dict(patches)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Usual specification of the module, with the patch applied after its execution."""
        patch = self.patches.pop(fullname, None)
        if patch is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_patch(module: Any) -> None:
            execute(module)
            try:
                patch(module)
            except Exception as error:
                print(f"paceline: cannot watch {fullname}: {error!r}", file=sys.stderr)

        spec.loader.exec_module = execute_and_patch  # type: ignore[method-assign]
        return spec


def in_turn(
    first: Callable[[Any], None], second: Callable[[Any], None] | None
) -> Callable[[Any], None]:
    """One function that calls both."""

    def patch(module: Any) -> None:
        first(module)
        if second is not None:
            second(module)

    return patch


def start(directory: str, with_layers: bool) -> Recorder:
    """Watch this process and write its steps to a file in ``directory``."""
    import paceline_watch_engines
    import paceline_watch_layers
    import paceline_watch_torch
    import paceline_watch_trials

    global active
    active = recorder = Recorder(directory)
    patches = paceline_watch_torch.patches(recorder)
    patches.update(paceline_watch_engines.patches(recorder))
    if with_layers:
        patches.update(paceline_watch_layers.patches(recorder))
    for module, change in paceline_watch_trials.patches().items():
        patches[module] = in_turn(change, patches.get(module))
    sys.meta_path.insert(0, PatchAfterImport(patches))
    atexit.register(recorder.close)
    gc.callbacks.append(recorder.collection)
    report_failures(recorder)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            after_in_parent=lambda: setattr(recorder, "forks", recorder.forks + 1),
            after_in_child=recorder.after_fork,
        )
    return recorder


def report_failures(recorder: Recorder) -> None:
    """Record the exception that ends the script, then let Python print it as usual."""
    previous = sys.excepthook

    def excepthook(kind: Any, error: Any, trace: Any) -> None:
        recorder.failed(kind, error, trace)
        previous(kind, error, trace)

    sys.excepthook = excepthook
