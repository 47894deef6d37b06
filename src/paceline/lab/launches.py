"""Labs for launches: a lock on an existing lab, or a lab created for one launch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from paceline.lab.lab_cluster import (
    LAUNCH_PREFIX,
    Lab,
    create_locked,
    lab_named,
    remove_abandoned,
    remove_locked,
)
from paceline.lab.lab_record import lab_lock, lock_path
from paceline.lab.machine import require_lab
from paceline.lab.settings import LabSettings

_numbers = count(1)


@contextmanager
def lab_users(name: str) -> Iterator[Lab]:
    """Lock a complete lab against removal while ranks run."""
    with lab_lock(name, exclusive=False):
        lab = lab_named(name)
        lab.check()
        yield lab


@contextmanager
def lab_for_launch(settings: LabSettings) -> Iterator[Lab]:
    """Create a lab for one launch; the next lab removes what a killed runner leaves."""
    name = f"{LAUNCH_PREFIX}{os.getpid()}-{next(_numbers)}"
    require_lab()
    remove_abandoned()
    with lab_lock(name, exclusive=True):
        try:
            yield create_locked(settings, name)
        finally:
            remove_locked(name)
            lock_path(name).unlink(missing_ok=True)
