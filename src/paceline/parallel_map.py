"""Map a function over parts on local processes or on a running Dask or Ray cluster.

Results are returned in the order of the parts, so that they do not depend on timing.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing import get_context
from typing import Any, TypeVar

import paceline
from paceline.errors import EnvironmentUnusableError, InputError, MissingExtraError
from paceline.units import plural

Part = TypeVar("Part")
Answer = TypeVar("Answer")
Workers = int | str
"""Number of processes, or address of a cluster: tcp://host:8786 (Dask), ray://host:10001."""
PARTS_PER_WORKER = 4
"""Several parts per worker balance the load when parts take different times."""
CONNECT_SECONDS = 10
_DASK = ("tcp://", "tls://", "ws://", "wss://")
_RAY = "ray://"


def parallel_map(
    function: Callable[[Part], Answer],
    parts: Sequence[Part],
    workers: Workers,
    progress: Callable[[int], None] = lambda part: None,
) -> list[Answer]:
    """``function`` of each part, in the order of the parts.

    ``progress`` is called with the index of each finished part. The function and its results
    are pickled: workers must be able to import it.
    """
    answers: dict[int, Answer] = {}
    for number, answer in _answers(function, parts, parse_workers(workers)):
        answers[number] = answer
        progress(number)
    return [answers[number] for number in range(len(parts))]


def parse_workers(value: Workers) -> Workers:
    """The checked number of worker processes or address of a cluster."""
    if isinstance(value, str) and value.startswith((*_DASK, _RAY)):
        return value
    most = 4 * (os.cpu_count() or 1)
    try:
        count = int(value)
    except ValueError:
        raise InputError(
            f"--workers: expected an integer or an address, got '{value}'",
            "write 4, tcp://host:8786 (Dask) or ray://host:10001 (Ray)",
        ) from None
    if not 1 <= count <= most:
        raise InputError(
            f"--workers must be between 1 and {most} (got {count})",
            f"this machine has {plural(os.cpu_count() or 1, 'core')}",
        )
    return count


def cluster_size(workers: Workers) -> int:
    """Number of parts processed concurrently; a guess for a cluster."""
    return workers if isinstance(workers, int) else 8


def _answers(
    function: Callable[[Part], Answer], parts: Sequence[Part], workers: Workers
) -> Iterator[tuple[int, Answer]]:
    if isinstance(workers, int):
        if workers == 1:
            return ((number, function(part)) for number, part in enumerate(parts))
        return _by_processes(function, parts, workers)
    run = _by_ray if workers.startswith(_RAY) else _by_dask
    return run(function, parts, workers)


def _by_processes(
    function: Callable[[Part], Answer], parts: Sequence[Part], workers: int
) -> Iterator[tuple[int, Answer]]:
    # Not "fork": NumPy starts threads, and a forked child of a threaded process may deadlock
    # (python/cpython#84559).
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        waiting = {pool.submit(function, part): number for number, part in enumerate(parts)}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process was killed", "use fewer --workers if memory is short"
            ) from error
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _by_dask(
    function: Callable[[Part], Answer], parts: Sequence[Part], address: str
) -> Iterator[tuple[int, Answer]]:
    try:
        import distributed
    except ImportError:
        raise MissingExtraError(
            "a Dask cluster needs the package 'distributed'", "pip install 'paceline[dask]'"
        ) from None
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unreachable("Dask", address, "dask scheduler", error) from error
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise EnvironmentUnusableError(
                f"the Dask scheduler at {address} has no workers",
                f"start one with 'dask worker {address}'",
            )
        try:
            _check_version(client.submit(_version, pure=False).result(), address)
        except ModuleNotFoundError:
            raise _not_installed(address) from None
        waiting = {
            client.submit(function, part, pure=False): number for number, part in enumerate(parts)
        }
        for future in distributed.as_completed(waiting, loop=client.loop):
            yield waiting[future], future.result()


def _by_ray(
    function: Callable[[Part], Answer], parts: Sequence[Part], address: str
) -> Iterator[tuple[int, Answer]]:
    try:
        # Not an extra of Paceline: client and cluster must have the same version.
        ray = import_module("ray")
    except ImportError:
        raise MissingExtraError(
            "a Ray cluster needs the package 'ray'",
            "pip install 'ray[client]' in the version of the cluster",
        ) from None
    try:
        ray.init(address, log_to_driver=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unreachable("Ray", address, "ray start --head", error) from error
    try:
        try:
            _check_version(ray.get(ray.remote(_version).remote()), address)
        except ray.exceptions.RayTaskError as error:
            raise _not_installed(address) from error
        work, sent = ray.remote(_call), ray.put(function)
        waiting = {work.remote(sent, part): number for number, part in enumerate(parts)}
        while waiting:
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            yield waiting.pop(ready), ray.get(ready)
    finally:
        ray.shutdown()


def _call(function: Callable[[Part], Answer], part: Part) -> Answer:
    return function(part)


def _version() -> str:
    return paceline.__version__


def _check_version(there: Any, address: str) -> None:
    if there != paceline.__version__:
        raise EnvironmentUnusableError(
            f"the workers at {address} have Paceline {there}, not {paceline.__version__}",
            "install the same version on both",
        )


def _not_installed(address: str) -> EnvironmentUnusableError:
    return EnvironmentUnusableError(
        f"the workers at {address} do not have Paceline", "install it in their environment"
    )


def _unreachable(kind: str, address: str, starts: str, error: Exception) -> InputError:
    lines = str(error).strip().splitlines()
    return InputError(
        f"no {kind} cluster answers at {address}" + (f": {lines[0]}" if lines else ""),
        f"start it with '{starts}', and give the address of its head",
    )
