"""How a check of any contract goes, and what is told of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from paceline.errors import PacelineError

Subject = TypeVar("Subject")


class ContractError(Exception):
    """What was done that the contract does not allow."""


class NotApplicable(Exception):  # noqa: N818
    """Why a check does not apply."""


@dataclass(frozen=True)
class Result:
    """How one check went: ``passed`` is None where it does not apply."""

    check: str
    passed: bool | None
    words: str
    seconds: float


def run_check(name: str, check: Callable[[Subject], str], subject: Subject) -> Result:
    """Run one check and say how it went."""
    begun = time.monotonic()
    passed: bool | None = True
    try:
        words = check(subject)
    except NotApplicable as reason:
        passed, words = None, str(reason)
    except (ContractError, PacelineError) as error:
        passed, words = False, str(error)
    return Result(name, passed, words, time.monotonic() - begun)
