"""Commands on other machines over ssh, and what ssh says when it cannot run them."""

import re
import shlex
from collections.abc import Mapping, Sequence

OPTIONS = {
    "user": "who to log in as",
    "ssh_port": "port of the ssh daemon",
    "key": "file of the private key",
    "ssh_config": "configuration file of ssh, as in ssh -F",
    "python": "path of a Python 3.11 or later on the hosts [default: the one that runs this]",
}
CONNECT_SECONDS = 10
ALIVE_SECONDS, ALIVE_TIMES = 5, 3
"""A host that is silent so often, so many seconds apart, is gone."""

_FLAGS = {"user": "-l", "ssh_port": "-p", "key": "-i", "ssh_config": "-F"}
_CAUSES = (
    (r"Could not resolve hostname (?P<host>\S+?):", "its name does not resolve", "hosts or DNS"),
    (r"connect to host (?P<host>\S+) port (?P<what>\d+): Connection refused",
     "nothing listens at its port {what}", "is sshd running there, at that port?"),
    (r"connect to host (?P<host>\S+) port \d+: (?P<what>[^\r\n]+)", "{what}", "is it up?"),
    (r"Connection to (?P<host>\S+)(?: port \d+)? timed out", "it does not answer", "is it up?"),
    (r"Connection to (?P<host>\S+) closed by remote host",
     "the connection to it broke", "is it up?"),
    (r"Timeout, server (?P<host>\S+) not responding", "it stopped answering", "is it up?"),
    (r"(?:\S+@)?(?P<host>\S+): Permission denied \((?P<what>[^)]*)\)",
     "it takes none of our keys ({what})", "'ssh-copy-id' puts one there"),
    (r"Identity file (?P<what>\S+) not accessible", "there is no key {what}", "name one that is"),
    (r"Host key verification failed", "its host key is not known here", "log in by hand once"),
    (r"(?P<what>\S+: can't open file \S+|\S+: can't find '__main__' module in \S+)",
     "it does not see the directory of the launch",
     "put the store on a disk that all hosts share (--store), or --launcher-option copy=launch"),
    (r"(?P<what>\S+): (?:No such file or directory|not found|command not found)",
     "it has no {what}", "name its Python: --launcher-option python=/path/to/python3"),
)  # fmt: skip


def ssh_words(host: str, options: Mapping[str, str]) -> list[str]:
    """The words before a command line that run it on ``host``; nothing is ever asked for."""
    chosen = [
        word for name, flag in _FLAGS.items() if name in options for word in (flag, options[name])
    ]
    quick = {
        "BatchMode": "yes",
        "ConnectTimeout": str(CONNECT_SECONDS),
        "ServerAliveInterval": str(ALIVE_SECONDS),
        "ServerAliveCountMax": str(ALIVE_TIMES),
    }
    settings = [word for name, value in quick.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", *settings, *chosen, "--", host]


def over_ssh(host: str, options: Mapping[str, str], command: Sequence[str]) -> list[str]:
    """``command`` on ``host``: its words come there as they are."""
    return [*ssh_words(host, options), shlex.join(command)]


def remote_trouble(log: str, host: str = "") -> str:
    """Which host could not be used and why, by what ssh printed; empty if it says nothing known."""
    for pattern, cause, remedy in _CAUSES:
        found = re.search(pattern, log)
        if found:
            parts = found.groupdict()
            who = parts.get("host") or host
            why = cause.format(what=parts.get("what") or "")
            return f"host {who}: {why} ({remedy})" if who else f"{why} ({remedy})"
    return ""
