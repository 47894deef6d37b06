"""Environments of frameworks, made in the background while other tests run."""

import os
import signal
import subprocess
import sys
import time

import pytest

from paceline.frameworks.framework_registry import environments, frameworks


def builds():
    """Frameworks whose environment needs a compiler."""
    places = {name: environments().get(one.environment) for name, one in frameworks().items()}
    return [name for name, place in places.items() if place is not None and place.tools]


class Installation:
    """One process per framework, one after another, each ``paceline frameworks install NAME``."""

    def __init__(self, names, directory):
        self.names = list(names)
        self.directory = directory
        self.log = directory / "installation.log"
        self._done = directory / "installed-now"
        self._done.write_text("")
        steps = "; ".join(
            f'"{sys.executable}" -m paceline frameworks install {name}; '
            f'echo {name} $? >>"{self._done}"'
            for name in self.names
        )
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                ["nice", "sh", "-c", steps],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PACELINE_ENVIRONMENTS": str(directory)},
                start_new_session=True,
            )

    def wait_for(self, name):
        """Return when the framework is installed."""
        while (code := self._exit_codes().get(name)) is None:
            if self._process.poll() is not None and name not in self._exit_codes():
                pytest.fail(f"the installation ended before {name}: {self._tail()}")
            time.sleep(0.2)
        if code:
            pytest.fail(f"{name} cannot be installed: {self._tail()}")

    def end(self):
        """End what is still being installed, with pip and compilers."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(timeout=60)

    def _exit_codes(self):
        lines = self._done.read_text().splitlines()
        return {name: int(code) for name, code in (line.split() for line in lines)}

    def _tail(self):
        return self.log.read_text(errors="replace")[-1000:]
