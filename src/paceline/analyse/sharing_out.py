"""Parts of a task shared out to processes here, or to a Dask or Ray cluster that is up.

Answers come in any order and are returned in that of the parts, so that nothing depends on who
was quick.
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

Part = TypeVar("Part")
Answer = TypeVar("Answer")
Workers = int | str
"""A number of processes, or the address of a cluster: tcp://host:8786 (Dask), ray://host:10001."""
PARTS_PER_WORKER = 4
"""Parts for each worker, so that one that got hard ones holds up no other."""
CONNECT_SECONDS = 10
_DASK = ("tcp://", "tls://", "ws://", "wss://")
_RAY = "ray://"


def shared_out(
    function: Callable[[Part], Answer],
    parts: Sequence[Part],
    workers: Workers,
    progress: Callable[[int], None] = lambda part: None,
) -> list[Answer]:
    """``function`` of each part, in the order of the parts, wherever they were worked on.

    ``progress`` is told the number of each part that is done. The function and what it returns
    are sent as pickles: it must be one that the workers can import.
    """
    answers: dict[int, Answer] = {}
    for number, answer in _answers(function, parts, workers_given(workers)):
        answers[number] = answer
        progress(number)
    return [answers[number] for number in range(len(parts))]


def workers_given(words: Workers) -> Workers:
    """A number of worker processes, or an address, checked; what is neither is refused."""
    if isinstance(words, str) and words.startswith((*_DASK, _RAY)):
        return words
    most = 4 * (os.cpu_count() or 1)
    try:
        count = int(words)
    except ValueError:
        raise InputError(
            f"'{words}' is no number of workers and no address of a cluster",
            "write 4, tcp://host:8786 (Dask) or ray://host:10001 (Ray)",
        ) from None
    if not 1 <= count <= most:
        raise InputError(
            f"{count} worker processes are impossible here",
            f"give 1 to {most}; there are {os.cpu_count()} cores",
        )
    return count


def cluster_size(workers: Workers) -> int:
    """How many parts are worked on at a time; of a cluster, what is likely."""
    return workers if isinstance(workers, int) else 8


def _answers(
    function: Callable[[Part], Answer], parts: Sequence[Part], workers: Workers
) -> Iterator[tuple[int, Answer]]:
    if isinstance(workers, int):
        if workers == 1:
            return ((number, function(part)) for number, part in enumerate(parts))
        return _by_processes(function, parts, workers)
    ask = _by_ray if workers.startswith(_RAY) else _by_dask
    return ask(function, parts, workers)


def _by_processes(
    function: Callable[[Part], Answer], parts: Sequence[Part], workers: int
) -> Iterator[tuple[int, Answer]]:
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        waiting = {pool.submit(function, part): number for number, part in enumerate(parts)}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process was killed", "is there memory for so many? give fewer --workers"
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
                f"the Dask scheduler at {address} has no worker",
                f"start one: dask worker {address}",
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
        # no extra of ours: a client must be of the very version of its cluster
        ray = import_module("ray")
    except ImportError:
        raise MissingExtraError(
            "a Ray cluster needs the package 'ray'", "pip install 'ray[client]', as the cluster has"
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
        work, sent = ray.remote(_worked_on), ray.put(function)
        waiting = {work.remote(sent, part): number for number, part in enumerate(parts)}
        while waiting:
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            yield waiting.pop(ready), ray.get(ready)
    finally:
        ray.shutdown()


def _worked_on(function: Callable[[Part], Answer], part: Part) -> Answer:
    return function(part)


def _version() -> str:
    return paceline.__version__


def _check_version(there: Any, address: str) -> None:
    if there != paceline.__version__:
        raise EnvironmentUnusableError(
            f"the workers at {address} have Paceline {there}, here it is {paceline.__version__}",
            "install the same version on both",
        )


def _not_installed(address: str) -> EnvironmentUnusableError:
    return EnvironmentUnusableError(
        f"the workers at {address} do not have Paceline", "install it in their environment"
    )


def _unreachable(kind: str, address: str, starts: str, error: Exception) -> InputError:
    said = str(error).strip().splitlines()
    return InputError(
        f"no {kind} cluster answers at {address}" + (f": {said[0]}" if said else ""),
        f"is it up ('{starts}'), and is the address that of its head?",
    )
