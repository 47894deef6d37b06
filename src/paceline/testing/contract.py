"""Runs a contract check and describes its result."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from paceline.errors import PacelineError

Subject = TypeVar("Subject")


class ContractError(Exception):
    """A violation of the contract."""


class NotApplicable(Exception):  # noqa: N818
    """The reason that a check does not apply."""


@dataclass(frozen=True)
class Result:
    """The result of one check; ``passed`` is None if it does not apply."""

    check: str
    passed: bool | None
    message: str
    seconds: float


def run_check(name: str, check: Callable[[Subject], str], subject: Subject) -> Result:
    begun = time.monotonic()
    passed: bool | None = True
    try:
        message = check(subject)
    except NotApplicable as reason:
        passed, message = None, str(reason)
    except (ContractError, PacelineError) as error:
        passed, message = False, str(error)
    return Result(name, passed, message, time.monotonic() - begun)
