"""Copies launches over ssh to hosts without a shared disk, and fetches the files of ranks.
Hosts only need Python."""

import io
import json
import re
import secrets
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from paceline.errors import EnvironmentUnusableError
from paceline.launch.launch_files import RendezvousAddress
from paceline.launch.launcher import LaunchRequest
from paceline.launch.onhost import addresses
from paceline.launch.onhost.agent import STUDY
from paceline.launch.remote_shell import over_ssh, ssh_failure_cause

WORKERS = "workers"
SEARCH_PATH = "PYTHONPATH"
FETCH_SECONDS = 60.0
SEND_SECONDS = 1800.0
_OF_RANKS = re.compile(r"rank-\d+\.[a-z.]+")
_UNPACK = (
    "import os, sys, tarfile; os.umask(0o077); os.makedirs(sys.argv[1], exist_ok=True); "
    "tarfile.open(fileobj=sys.stdin.buffer, mode='r|').extractall(sys.argv[1])"
)
_PACK = (
    "import glob, os, sys, tarfile; os.chdir(sys.argv[1]); "
    "tar = tarfile.open(fileobj=sys.stdout.buffer, mode='w|'); "
    "[tar.add(name) for name in glob.glob('rank-*')]; tar.close()"
)
_REMOVE = "import shutil, sys; shutil.rmtree(sys.argv[1], ignore_errors=True)"
_ADDRESS = "\nimport json, sys\naddress = own_address(*sys.argv[1:])\n" + (
    "print(json.dumps([address, free_port(address), free_port(address)]))\n"
)


class Sender:
    """Copies a launch into a new folder of each host, and fetches the files of ranks."""

    def __init__(self, hosts: Iterable[str], options: Mapping[str, str], python: str) -> None:
        self.hosts, self.options, self.python = tuple(dict.fromkeys(hosts)), options, python
        parent = options.get("directory", "/tmp")
        self.root = f"{parent}/paceline-{secrets.token_hex(8)}"

    def remote_directory(self, request: LaunchRequest) -> str:
        return f"{self.root}/{request.directory.name}"

    def rendezvous_address(self) -> RendezvousAddress:
        """Query the address and free ports of the first host."""
        source = Path(addresses.__file__).read_text(encoding="utf-8") + _ADDRESS
        interface = self.options.get("interface", "")
        answer = self._run(self.hosts[0], ["-", interface], source.encode(), FETCH_SECONDS)
        try:
            address, port, roll_port = json.loads(answer)
        except ValueError as error:
            raise EnvironmentUnusableError(
                f"host {self.hosts[0]}: expected its address, got {answer[:80]!r}",
                "remove output from the login scripts of its shell",
            ) from error
        return RendezvousAddress(address, port, roll_port, interface)

    def send(self, request: LaunchRequest) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(request.directory, request.directory.name)
        for host in self.hosts:
            self._run(host, ["-c", _UNPACK, self.root], packed.getvalue(), SEND_SECONDS)

    def send_environment(self, python: str) -> None:
        """Copy the virtual environment of an interpreter to the same path on hosts without it."""
        folder = Path(python).parent.parent
        if not (folder / "pyvenv.cfg").exists():
            raise EnvironmentUnusableError(
                f"cannot copy {python}: it is not in a virtual environment",
                "install the same Python and framework on the hosts",
            )
        for host in self.hosts:
            exists = "import os, sys; print(os.path.exists(sys.argv[1]))"
            if self._run(host, ["-c", exists, python], b"", FETCH_SECONDS).strip() == b"True":
                continue
            command = over_ssh(
                host, self.options, self._python(["-c", _UNPACK, str(folder.parent)])
            )
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stderr=subprocess.PIPE
            ) as process:
                try:
                    with tarfile.open(fileobj=process.stdin, mode="w|") as tar:
                        tar.add(folder, folder.name)
                except BrokenPipeError:  # ssh prints the cause
                    pass
                _, errors = process.communicate()
            self._check(host, process.returncode, errors)

    def fetch(self, request: LaunchRequest) -> None:
        """Fetch the files of ranks from each host.

        A host that does not answer is skipped: its ranks are then reported as missing.
        """
        for host in self.hosts:
            with suppress(EnvironmentUnusableError, tarfile.TarError):
                packed = self._run(
                    host, ["-c", _PACK, self.remote_directory(request)], b"", FETCH_SECONDS
                )
                unpack_ranks(io.BytesIO(packed), request.directory)

    def remove(self) -> None:
        for host in self.hosts:
            with suppress(EnvironmentUnusableError):
                self._run(host, ["-c", _REMOVE, self.root], b"", FETCH_SECONDS)

    def _python(self, arguments: Sequence[str]) -> list[str]:
        return [self.python, "-I", "-S", *arguments]

    def _run(self, host: str, arguments: Sequence[str], sent: bytes, seconds: float) -> bytes:
        command = over_ssh(host, self.options, self._python(arguments))
        try:
            ended = subprocess.run(
                command, input=sent, capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise EnvironmentUnusableError(
                f"host {host}: copying the files of the launch took longer than {seconds:.0f} s",
                "check its network and the free space of its disk",
            ) from None
        self._check(host, ended.returncode, ended.stderr)
        return ended.stdout

    def _check(self, host: str, code: int, errors: bytes) -> None:
        if code == 0:
            return
        text = errors.decode("utf-8", "replace").strip()
        last = text.splitlines()[-1][:200] if text else f"ssh ended with code {code}"
        cause = ssh_failure_cause(text, host) or f"host {host}: {last}"
        raise EnvironmentUnusableError(cause, "check every host with 'paceline doctor --hosts'")


def movable(request: LaunchRequest) -> LaunchRequest:
    """Return the launch with all files that its ranks read inside its directory."""
    here = str(request.directory)
    moved = {here: f"{STUDY}/{request.directory.name}"}
    for folder in _folders(request):
        inside = Path(WORKERS, str(len(moved)), folder.name)
        if not (request.directory / inside).exists():
            copy_folder(folder, request.directory / inside)
        moved[str(folder)] = f"{moved[here]}/{inside}"
    commands = [
        tuple(relocate_arguments(word, moved) for word in request.command(rank))
        for rank in range(request.world_size)
    ]
    variables = [
        {name: relocate_arguments(value, moved) for name, value in request.variables(rank).items()}
        for rank in range(request.world_size)
    ]
    return replace(request, command=commands.__getitem__, variables=variables.__getitem__)


def copy_folder(folder: Path, target: Path) -> None:
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__"))


def relocate_arguments(text: str, moved: Mapping[str, str]) -> str:
    """Replace the paths of moved folders in a text."""
    for folder in sorted(moved, key=len, reverse=True):
        text = text.replace(folder, moved[folder])
    return text


def unpack_ranks(packed: IO[bytes], directory: Path) -> None:
    """Extract the files of ranks from an archive, and nothing else."""
    with tarfile.open(fileobj=packed) as tar:
        for member in tar:
            if member.isfile() and _OF_RANKS.fullmatch(member.name):
                tar.extract(member, directory, filter="data")


def _folders(request: LaunchRequest) -> list[Path]:
    """Return the folders of a rank's script and modules."""
    found = [
        Path(word).parent for word in request.command(0)[1:] if _is_file_elsewhere(word, request)
    ]
    path = request.variables(0).get(SEARCH_PATH, "")
    found += [Path(folder) for folder in path.split(":") if folder and Path(folder).is_dir()]
    return list(dict.fromkeys(found))


def _is_file_elsewhere(word: str, request: LaunchRequest) -> bool:
    path = Path(word)
    return path.is_absolute() and path.is_file() and not path.is_relative_to(request.directory)
