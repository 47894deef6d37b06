"""The rendezvous port of a launch."""

import socket

from paceline.errors import InputError

LOOPBACK = "127.0.0.1"


def rendezvous_port(wanted: int | None) -> int:
    """Return ``wanted`` if it is free, or any free port when None."""
    return free_port() if wanted is None else checked_port(wanted)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def checked_port(port: int) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            raise InputError(
                f"cannot use port {port}: {error}",
                "omit --port to use a free port",
            ) from error
    return port
