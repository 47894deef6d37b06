"""The contract of a framework's worker, as checks for workers of any package.

    from paceline.testing.adapter_suite import run_suite
    for result in run_suite("torch-ddp"):
        print(result)

Each check starts real launches through Paceline's launcher and checks the result: the described
network, the losses of the NumPy reference, phases that add up, a reason
for every failure, and no leftover processes.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from paceline.frameworks.command import check_runnable, runs_in_our_environment
from paceline.frameworks.environments.environment_state import record_verification
from paceline.frameworks.framework_registry import framework
from paceline.store import Store
from paceline.testing.bench import Bench
from paceline.testing.contract import Result, run_check
from paceline.testing.failure_checks import (
    check_crash,
    check_out_of_memory,
    check_terminated,
    check_timeout,
)
from paceline.testing.network_checks import check_every_network, check_parameters
from paceline.testing.training_checks import (
    check_cores,
    check_losses,
    check_operations,
    check_phases,
    check_synchronisation,
    check_two_processes,
)

QUICK: dict[str, Callable[[Bench], str]] = {
    "parameters": check_parameters,
    "losses": check_losses,
    "operations": check_operations,
    "synchronisation": check_synchronisation,
    "two processes": check_two_processes,
    "phases": check_phases,
    "cores": check_cores,
    "timeout": check_timeout,
    "out of memory": check_out_of_memory,
    "crash": check_crash,
    "SIGTERM": check_terminated,
}
"""All checks except the long one."""

CHECKS = {**QUICK, "every network": check_every_network}
"""The whole contract."""


def run_suite(
    name: str,
    checks: dict[str, Callable[[Bench], str]] | None = None,
    directory: Path | None = None,
) -> Iterator[Result]:
    """Run the checks (`QUICK` by default) on a framework, one result at a time.

    Output of the workers is kept below ``directory``, or dropped without one.
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


def verify(
    name: str,
    checks: dict[str, Callable[[Bench], str]] | None = None,
    directory: Path | None = None,
) -> Iterator[Result]:
    """Run the checks as `run_suite` does, and record in the environment whether all passed."""
    passed = True
    for result in run_suite(name, checks, directory):
        passed = passed and result.passed is not False
        yield result
    wanted = framework(name)
    if runs_in_our_environment(wanted):
        record_verification(wanted.environment, name, passed)
