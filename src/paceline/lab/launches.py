"""Labs for launches: a lock on an existing lab, or a lab created for one launch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from paceline.lab.lab_cluster import (
    LAUNCH_PREFIX,
    Lab,
    end_abandoned,
    end_held,
    lab_named,
    make_held,
)
from paceline.lab.lab_record import held, lock_path
from paceline.lab.machine import require_lab
from paceline.lab.settings import LabSettings

_numbers = count(1)


@contextmanager
def lab_users(name: str) -> Iterator[Lab]:
    """Lock a complete lab against removal while ranks run."""
    with held(name, alone=False):
        lab = lab_named(name)
        lab.check()
        yield lab


@contextmanager
def lab_for_launch(settings: LabSettings) -> Iterator[Lab]:
    """Create a lab for one launch; the next lab removes what a killed runner leaves."""
    name = f"{LAUNCH_PREFIX}{os.getpid()}-{next(_numbers)}"
    require_lab()
    end_abandoned()
    with held(name, alone=True):
        try:
            yield make_held(settings, name)
        finally:
            end_held(name)
            lock_path(name).unlink(missing_ok=True)
