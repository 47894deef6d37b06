"""An sshd for tests: on loopback, with its own keys, as the user that runs the test."""

import getpass
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline.launch.onhost.barrier import _connect
from paceline.launch.ports import free_port

HOSTS = ("127.0.0.1", "127.0.0.2")
PROGRAM = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
SETTINGS = """Port {port}
ListenAddress 127.0.0.1
ListenAddress 127.0.0.2
HostKey {directory}/host
PidFile none
AuthorizedKeysFile {directory}/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowUsers {user}
"""
CLIENT = """Host *
IdentityFile {directory}/user
IdentitiesOnly yes
UserKnownHostsFile {directory}/known
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
"""


@dataclass(frozen=True)
class Daemon:
    directory: Path
    port: int
    process: subprocess.Popen

    @property
    def options(self):
        return {"ssh_config": str(self.directory / "client"), "ssh_port": str(self.port)}


@contextmanager
def running_daemon(directory):
    port = free_port()
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
        subprocess.run(command, check=True)
    key = " ".join((directory / "host.pub").read_text().split()[:2])
    (directory / "known").write_text("".join(f"[{host}]:{port} {key}\n" for host in HOSTS))
    fields = {"directory": directory, "port": port, "user": getpass.getuser()}
    (directory / "daemon").write_text(SETTINGS.format(**fields))
    (directory / "client").write_text(CLIENT.format(**fields))
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with (directory / "sshd.log").open("wb") as log:
        command = [PROGRAM, "-D", "-e", "-f", str(directory / "daemon")]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _connect(("127.0.0.1", port), time.monotonic() + 20.0).close()
        yield Daemon(directory, port, process)
    finally:
        process.terminate()
        process.wait()
