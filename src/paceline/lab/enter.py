"""Executes a command on a host of a lab, in its network namespace and control groups.

    python -I -S enter.py NAMESPACE GROUPS COMMAND...

NAMESPACE is a file such as /run/netns/NAME, GROUPS are directories of control groups, separated
by colons ("" for none). Linux and the standard library only. Mounts do not change, unlike with
``ip netns exec``.
"""

import ctypes
import os
import sys

# linux/sched.h; 126 is the exit code of shells for a command that cannot be run.
CLONE_NEWNET = 0x40000000
CANNOT_RUN = 126


def main(namespace: str, groups: str, command: list[str]) -> None:
    try:
        for group in filter(None, groups.split(":")):
            with open(f"{group}/cgroup.procs", "w", encoding="ascii") as members:  # noqa: PTH123
                members.write(str(os.getpid()))
        descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(descriptor, CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), namespace)
        os.close(descriptor)
    except OSError as error:
        os.write(2, f"cannot enter host {namespace}: {error}\n".encode())
        os._exit(CANNOT_RUN)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot run '{command[0]}': {error.strerror}\n".encode())
        os._exit(CANNOT_RUN)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
