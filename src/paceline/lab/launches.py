"""Labs as launches use them: held while ranks run, or made for one launch and ended after it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from paceline.lab.cluster import (
    LAUNCH_PREFIX,
    Lab,
    end_abandoned,
    end_held,
    lab_named,
    make_held,
)
from paceline.lab.machine import require_lab
from paceline.lab.record import held, lock_path
from paceline.lab.settings import LabSettings

_numbers = count(1)


@contextmanager
def lab_users(name: str) -> Iterator[Lab]:
    """A whole lab that nobody ends or changes meanwhile."""
    with held(name, alone=False):
        lab = lab_named(name)
        lab.check()
        yield lab


@contextmanager
def lab_for_launch(settings: LabSettings) -> Iterator[Lab]:
    """A lab of its own for one launch; what a killed runner leaves, any next lab removes."""
    name = f"{LAUNCH_PREFIX}{os.getpid()}-{next(_numbers)}"
    require_lab()
    end_abandoned()
    with held(name, alone=True):
        try:
            yield make_held(settings, name)
        finally:
            end_held(name)
            lock_path(name).unlink(missing_ok=True)
