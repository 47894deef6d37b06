"""Watches PyTorch: optimisers, backward, data loaders, DDP buckets, collectives.

The results of the script must not change. Functions are wrapped by name right after the import of
their module; a module that does not have the expected functions is left unchanged.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
from typing import Any, Callable

from paceline_watch import Recorder, clock

COLLECTIVES = (
    *("all_gather", "all_gather_into_tensor", "all_gather_single", "all_reduce"),
    *("all_to_all_single", "broadcast", "reduce", "reduce_scatter_single", "reduce_scatter_tensor"),
    *("all_gather_object", "all_to_all", "barrier", "broadcast_object_list", "gather", "scatter"),
    *("gather_object", "monitored_barrier", "reduce_scatter"),
)
"""Names in all versions of PyTorch. One may call another: the inner call is no separate message."""
LEARNING_STEPS = 2
"""Steps in which all modules are watched for the outermost ones."""


def patches(recorder: Recorder) -> dict[str, Callable[[Any], None]]:
    """Modules to watch, each with the function that does it."""
    return {
        "torch.optim.optimizer": lambda module: watch_optimisers(module, recorder),
        "torch.autograd": lambda module: watch_backward(module, recorder),
        "torch.utils.data.dataloader": lambda module: watch_loaders(module, recorder),
        "torch.serialization": lambda module: watch_saving(module, recorder),
        "torch.nn.modules.module": lambda module: watch_modules(module, recorder),
        "torch.distributed.distributed_c10d": lambda module: watch_collectives(module, recorder),
        "torch.nn.parallel.distributed": lambda module: watch_ddp(module, recorder),
    }


def watch_optimisers(module: Any, recorder: Recorder) -> None:
    """End a step when the first optimiser that took a step takes the next one.

    Optimisers can contain others (sharded ones do), and a script can have several; updates of the
    others are part of the step. A closure (Lightning passes one, LBFGS needs one) runs forward and
    backward within the optimiser step: its time is not part of the update.
    """
    state: dict[str, Any] = {"depth": 0, "started": 0.0, "main": None}

    def before(optimiser: Any, args: Any, kwargs: Any) -> Any:
        is_outermost = state["depth"] == 0
        if is_outermost:
            state["started"] = clock()
            recorder.mark(state["started"])
            if state["main"] is None:
                state["main"] = id(optimiser)
        state["depth"] += 1
        return with_closure(outside_update, args, kwargs) if is_outermost else None

    def outside_update(closure: Callable[[], Any]) -> Callable[[], Any]:
        @functools.wraps(closure)
        def called() -> Any:
            recorder.segment("update", state["started"], clock())
            try:
                return closure()
            finally:
                state["started"] = clock()

        return called

    def after(optimiser: Any, args: Any, kwargs: Any) -> None:
        state["depth"] = max(0, state["depth"] - 1)
        if state["depth"] == 0 and not recorder.in_engine:
            moment = clock()
            recorder.segment("update", state["started"], moment)
            if id(optimiser) == state["main"] and not recorder.steps_by_hand:
                recorder.end_step(moment)

    module.register_optimizer_step_pre_hook(before)
    module.register_optimizer_step_post_hook(after)


def with_closure(wrap: Callable[[Any], Any], args: Any, kwargs: Any) -> Any:
    """Arguments of ``optimiser.step`` with a wrapped closure; None without a closure."""
    if callable(kwargs.get("closure")):
        return args, {**kwargs, "closure": wrap(kwargs["closure"])}
    if len(args) > 1 and callable(args[1]):
        return (args[0], wrap(args[1]), *args[2:]), kwargs
    return None


def watch_backward(module: Any, recorder: Recorder) -> None:
    """``loss.backward()`` calls ``torch.autograd.backward`` by name."""
    original = module.backward

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        start = clock()
        recorder.mark(start)
        try:
            return original(*args, **kwargs)
        finally:
            recorder.segment("backward", start, clock())

    module.backward = backward


def watch_saving(module: Any, recorder: Recorder) -> None:
    """Record checkpoints that the training thread writes itself."""
    original = module.save

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        start = clock()
        recorder.mark(start)
        try:
            return original(*args, **kwargs)
        finally:
            if recorder.begun is not None:
                recorder.segment("checkpoint", start, clock())

    module.save = save


def watch_modules(module: Any, recorder: Recorder) -> None:
    """Record evaluations, and calls of the outermost modules: before them the host prepares a step.

    Every call of a module is seen in the first steps only; then only those of the classes that were
    outermost, because a network has many modules.
    """
    watch_evaluation(module, recorder)
    _calls.watch(module.Module, recorder)


class _ModuleCalls:
    """State of `timed_call`, a function of this module: users' classes that have it can be pickled
    (by cloudpickle)."""

    def watch(self, base: Any, recorder: Recorder) -> None:
        self.base, self.original, self.recorder = base, base.__call__, recorder
        self.inside = False
        self.learning = True
        self.outermost: set[Any] = set()
        self.torch = sys.modules["torch"]
        compiler = getattr(self.torch, "compiler", None)
        self.is_compiling = getattr(compiler, "is_compiling", lambda: False)
        timed_call.__wrapped__ = self.original  # type: ignore[attr-defined]
        base.__call__ = timed_call

    def learn(self, module: Any) -> None:
        """Remember the class of an outermost module; after the first steps, watch only these.

        A metric or a loss has no weights: it does not begin a forward pass.
        """
        if any(weight.requires_grad for weight in module.parameters()):
            self.outermost.add(type(module))
        if self.recorder.step_count > LEARNING_STEPS:
            self.learning, self.base.__call__ = False, self.original
            for one in self.outermost:
                if one.__call__ is self.original:
                    one.__call__ = timed_call


_calls = _ModuleCalls()


def timed_call(module: Any, *args: Any, **kwargs: Any) -> Any:
    """``Module.__call__`` that records the calls of the training thread outside of other ones."""
    own = _calls
    if own.is_compiling() or own.inside or threading.get_ident() != own.recorder.thread:
        return own.original(module, *args, **kwargs)
    if own.learning:
        own.learn(module)
        if type(module) not in own.outermost:
            return own.original(module, *args, **kwargs)
    start, own.inside = clock(), True
    own.recorder.mark(start)
    try:
        return own.original(module, *args, **kwargs)
    finally:
        own.inside = False
        # Without gradients: a validation, or a teacher of the network.
        training = own.torch.is_grad_enabled()
        own.recorder.segment("forward" if training else "evaluation", start, clock())
        if training:
            own.recorder.computed += size_of(args or kwargs)[1]


def watch_evaluation(module: Any, recorder: Recorder) -> None:
    """Record the time from ``model.eval()`` to ``model.train()``."""
    original = module.Module.train
    state: dict[str, Any] = {"depth": 0, "begun": None}

    @functools.wraps(original)
    def train(self: Any, mode: bool = True) -> Any:
        if state["depth"] == 0 and recorder.begun is not None:
            if not mode and state["begun"] is None:
                state["begun"] = clock()
                recorder.mark(state["begun"])
            elif mode and state["begun"] is not None:
                start, state["begun"] = state["begun"], None
                recorder.segment("evaluation", max(start, recorder.begun), clock())
        state["depth"] += 1
        try:
            return original(self, mode)
        finally:
            state["depth"] -= 1

    module.Module.train = train


def watch_loaders(module: Any, recorder: Recorder) -> None:
    """Record the time that the script waits for each batch, and its number of samples."""
    iterator = module._BaseDataLoaderIter
    original = iterator.__next__

    @functools.wraps(original)
    def fetch(self: Any) -> Any:
        start = clock()
        recorder.mark(start)
        batch = original(self)
        recorder.fetched(start, clock(), *size_of(batch))
        workers = getattr(self, "_workers", None)
        if workers:
            recorder.loader_workers = max(recorder.loader_workers, len(workers))
            recorder.worker_numbers = [worker.pid for worker in workers]
        return batch

    iterator.__next__ = fetch


def size_of(batch: Any) -> tuple[int, int]:
    """First dimension and elements of the first tensor of a batch; zeros if unknown."""
    for _ in range(4):
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return (int(shape[0]) if len(shape) else 0), math.prod(shape)
        if isinstance(batch, dict):
            batch = next(iter(batch.values()), None)
        elif isinstance(batch, (list, tuple)) and batch:
            batch = batch[0]
        else:
            break
    return 0, 0


def watch_collectives(module: Any, recorder: Recorder) -> None:
    """Record collectives of the script and of FSDP2; DDP does not call these functions."""
    calling = threading.local()
    for name in COLLECTIVES:
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, timed_collective(name, original, recorder, calling))


def timed_collective(name: str, original: Any, recorder: Recorder, calling: Any) -> Any:
    """Wrap ``original`` to record its messages until they return or arrive.

    ``calling`` has a flag per thread for being inside a collective.
    """

    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        if getattr(calling, "now", False):
            return original(*args, **kwargs)
        start, calling.now = clock(), True
        recorder.mark(start)
        try:
            work = original(*args, **kwargs)
        finally:
            calling.now = False
        given = (*args, *kwargs.values())
        size = group_size(given)
        inside = 0 < size < sys.modules["torch.distributed"].get_world_size()
        operation = f"{name} of {size} ranks" if inside else name
        message = recorder.message(operation, bytes_of(given), start)
        if work is None:
            message[3] = clock()
            recorder.segment("group wait" if inside else "wait", start, message[3])
        else:
            mark_arrival(work, message)
        return work

    return collective


def group_size(arguments: tuple[Any, ...]) -> int:
    """Ranks of the process group among the arguments; 0 for the group of all ranks."""
    for argument in arguments:
        if callable(getattr(argument, "rank", None)) and callable(getattr(argument, "size", None)):
            return int(argument.size())
    return 0


def mark_arrival(work: Any, message: list[Any]) -> None:
    """Record the completion of an asynchronous collective, if its backend reports it."""
    try:
        work.get_future().then(lambda _: message.__setitem__(3, clock()))
    except (AttributeError, RuntimeError):
        message[3] = clock()


def bytes_of(arguments: tuple[Any, ...]) -> float:
    """Bytes of the largest tensor or list of tensors among the arguments: the whole message."""
    largest = 0
    for argument in arguments:
        tensors = argument if isinstance(argument, (list, tuple)) else [argument]
        sizes = [t.numel() * t.element_size() for t in tensors if hasattr(t, "element_size")]
        largest = max(largest, sum(sizes))
    return float(largest)


def watch_ddp(module: Any, recorder: Recorder) -> None:
    """Time DDP buckets with a communication hook that behaves like DDP without a hook.

    The hook is registered at the first forward pass, or when the script registers its own hook,
    which ours then calls.
    """
    ddp = module.DistributedDataParallel
    register, forward = ddp.register_comm_hook, ddp.forward
    register_builtin = getattr(ddp, "_register_builtin_comm_hook", None)

    @functools.wraps(register)
    def register_comm_hook(self: Any, state: Any, hook: Any) -> Any:
        timer = self.__dict__.get("_paceline_timer")
        if timer is None and "_paceline_timer" not in self.__dict__:
            timer = registered(self)
        if timer is None:
            return register(self, state, hook)
        timer.inner, timer.inner_state = hook, state
        return None

    def registered(self: Any) -> Any:
        """Timer of our hook; None if DDP rejects the hook."""
        self.__dict__["_paceline_timer"] = None
        timer = BucketTimer(recorder, self.process_group)
        try:
            register(self, timer, timed_bucket)
            self.__dict__["_paceline_timer"] = timer
            recorder.job_facts["ddp"] = settings_of(self)
        except Exception as error:
            print(f"paceline: DDP's buckets are not timed: {error!r}", file=sys.stderr)
        return self.__dict__["_paceline_timer"]

    @functools.wraps(forward)
    def watched_forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "_paceline_timer" not in self.__dict__:
            registered(self)
        return forward(self, *args, **kwargs)

    ddp.register_comm_hook, ddp.forward = register_comm_hook, watched_forward
    watch_buffers(ddp, recorder)
    watch_graph_search(ddp, recorder)
    # A built-in (C++) hook and a Python hook exclude each other: such buckets are not timed.
    if register_builtin is not None:

        def leave_alone(self: Any, kind: Any) -> Any:
            self.__dict__["_paceline_timer"] = None
            return register_builtin(self, kind)

        ddp._register_builtin_comm_hook = functools.wraps(register_builtin)(leave_alone)


def settings_of(model: Any) -> dict[str, Any]:
    """Settings of a DDP model that affect its speed."""
    return {
        "find_unused_parameters": bool(getattr(model, "find_unused_parameters", False)),
        "gradient_as_bucket_view": bool(getattr(model, "gradient_as_bucket_view", False)),
        "bucket_bytes": int(getattr(model, "bucket_bytes_cap", 0)),
        "tensors": sum(1 for own in model.parameters() if own.requires_grad),
    }


def watch_buffers(ddp: Any, recorder: Recorder) -> None:
    """Record the broadcast of buffers (running means) before forward, where ranks synchronise."""
    original = getattr(ddp, "_sync_buffers", None)
    if original is None:
        return

    @functools.wraps(original)
    def sync_buffers(self: Any) -> Any:
        start = clock()
        recorder.mark(start)
        result = original(self)
        size = sum(buffer.numel() * buffer.element_size() for buffer in self.modules_buffers)
        message = recorder.message("buffers", float(size), start)
        message[3] = clock()
        recorder.segment("wait", start, message[3])
        return result

    ddp._sync_buffers = sync_buffers


def watch_graph_search(ddp: Any, recorder: Recorder) -> None:
    """Record the search of the graph after forward, which ``find_unused_parameters`` needs."""
    original = getattr(ddp, "_post_forward", None)
    if original is None:
        return

    @functools.wraps(original)
    def post_forward(self: Any, output: Any) -> Any:
        if not getattr(self, "find_unused_parameters", False):
            return original(self, output)
        start = clock()
        recorder.mark(start)
        result = original(self, output)
        recorder.segment("graph search", start, clock())
        return result

    ddp._post_forward = post_forward


class BucketTimer:
    """State of the communication hook: the recorder and the hook of the script."""

    def __init__(self, recorder: Recorder, group: Any) -> None:
        import torch.distributed as dist

        self.recorder, self.group = recorder, group
        self.world = dist.get_world_size(group)
        self.inner: Any = None
        self.inner_state: Any = None

    def describe(self, bucket: Any) -> None:
        """Record bytes of each bucket and of its tensors in the third step.

        DDP forms its buckets anew after the first step.
        """
        if self.recorder.step_count == 2:
            sizes = [t.numel() * t.element_size() for t in bucket.parameters()]
            buckets = self.recorder.job_facts.setdefault("buckets", [])
            buckets.append([bucket.buffer().nbytes, sizes])


def timed_bucket(timer, bucket):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Time a bucket: the averaging all-reduce of DDP, or the hook of the script.

    Without annotations, since DDP rejects a hook whose annotations differ from its own.
    """
    buffer = bucket.buffer()
    moment = clock()
    message = timer.recorder.message("bucket", float(buffer.nbytes), moment)
    timer.recorder.mark(moment)
    timer.describe(bucket)
    if timer.inner is not None:
        future = timer.inner(timer.inner_state, bucket)

        def value(done: Any) -> Any:
            message[3] = clock()
            return done.value()

    else:
        # As DDP's default hook: divided before the all-reduce, which avoids overflow in fp16.
        future = timer.group.allreduce([buffer.div_(timer.world)]).get_future()

        def value(done: Any) -> Any:
            message[3] = clock()
            return done.value()[0]

    return future.then(value)
