"""The port where the ranks of a launch meet."""

import socket

from paceline.errors import InputError

LOOPBACK = "127.0.0.1"


def meeting_port(wanted: int | None) -> int:
    """``wanted`` if it can be listened on, a free one when None."""
    return free_port() if wanted is None else checked_port(wanted)


def free_port() -> int:
    """A TCP port of the loopback address that nothing listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def checked_port(port: int) -> int:
    """``port``, if it can be listened on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            raise InputError(
                f"port {port} cannot be used: {error}",
                "leave --port out and a free one is chosen",
            ) from error
    return port
