"""The contract of a framework's worker, as checks that anyone can run on their own worker.

    from paceline.testing.adapter_suite import run_suite
    for result in run_suite("torch-ddp"):
        print(result)

Each check starts real launches through Paceline's launcher and compares what comes out with what
the worker owes: the described network, the NumPy reference's losses, phases that add up, a reason
for every failure, and nothing left behind.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import PacelineError
from paceline.measurement.frameworks import check_runnable, framework
from paceline.store import Store
from paceline.testing.bench import Bench, ContractError, NotApplicable
from paceline.testing.failure_checks import (
    check_crash,
    check_out_of_memory,
    check_terminated,
    check_timeout,
)
from paceline.testing.network_checks import check_every_network, check_parameters
from paceline.testing.training_checks import (
    check_losses,
    check_operations,
    check_phases,
    check_synchronisation,
    check_two_processes,
)


@dataclass(frozen=True)
class Result:
    """How one check went: ``passed`` is None where it does not apply."""

    check: str
    passed: bool | None
    words: str
    seconds: float


QUICK: dict[str, Callable[[Bench], str]] = {
    "parameters": check_parameters,
    "losses": check_losses,
    "operations": check_operations,
    "synchronisation": check_synchronisation,
    "two processes": check_two_processes,
    "phases": check_phases,
    "timeout": check_timeout,
    "out of memory": check_out_of_memory,
    "crash": check_crash,
    "SIGTERM": check_terminated,
}
"""Every check but the long one."""

CHECKS = {**QUICK, "every network": check_every_network}
"""The whole contract."""


def run_check(name: str, check: Callable[[Bench], str], bench: Bench) -> Result:
    """Run one check and say how it went."""
    begun = time.monotonic()
    passed: bool | None = True
    try:
        words = check(bench)
    except NotApplicable as reason:
        passed, words = None, str(reason)
    except (ContractError, PacelineError) as error:
        passed, words = False, str(error)
    return Result(name, passed, words, time.monotonic() - begun)


def run_suite(
    name: str,
    checks: dict[str, Callable[[Bench], str]] | None = None,
    directory: Path | None = None,
) -> Iterator[Result]:
    """Run the checks (`QUICK` by default) on a framework, one result at a time.

    What the workers print is kept below ``directory``, or dropped when there is none.
    """
    wanted = framework(name)
    check_runnable(wanted)
    with (
        tempfile.TemporaryDirectory() as temporary,
        Store((directory or Path(temporary)) / "contract.db") as store,
    ):
        bench = Bench(wanted, store)
        for label, check in (QUICK if checks is None else checks).items():
            yield run_check(label, check, bench)
