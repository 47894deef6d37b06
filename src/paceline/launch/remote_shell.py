"""Commands on other hosts over ssh, and the causes behind ssh's error messages."""

import re
import shlex
from collections.abc import Mapping, Sequence

OPTIONS = {
    "user": "user name on the hosts",
    "ssh_port": "port of sshd",
    "key": "private key file",
    "ssh_config": "configuration file, as in ssh -F",
    "python": "path of Python 3.11 or later on the hosts [default: same path as here]",
}
CONNECT_SECONDS = 10
ALIVE_SECONDS, ALIVE_TIMES = 5, 3
"""A host counts as lost after this many unanswered keep-alive messages at this interval."""

_FLAGS = {"user": "-l", "ssh_port": "-p", "key": "-i", "ssh_config": "-F"}
_CHECK_HOST = "check that it is up"
_CAUSES = (
    (r"Could not resolve hostname (?P<host>\S+?):",
     "its name does not resolve", "check the spelling, /etc/hosts and DNS"),
    (r"connect to host (?P<host>\S+) port (?P<what>\d+): Connection refused",
     "connection refused at port {what}", "check that sshd runs there, at that port"),
    (r"connect to host (?P<host>\S+) port \d+: (?P<what>[^\r\n]+)", "{what}", _CHECK_HOST),
    (r"Connection to (?P<host>\S+)(?: port \d+)? timed out", "it does not answer", _CHECK_HOST),
    (r"Connection to (?P<host>\S+) closed by remote host", "the connection broke", _CHECK_HOST),
    (r"Timeout, server (?P<host>\S+) not responding", "it stopped answering", _CHECK_HOST),
    (r"(?:\S+@)?(?P<host>\S+): Permission denied \((?P<what>[^)]*)\)",
     "it accepts none of the keys ({what})", "install one with 'ssh-copy-id'"),
    (r"Identity file (?P<what>\S+) not accessible",
     "the key {what} does not exist", "check --launcher-option key=FILE"),
    (r"Host key verification failed", "its host key is unknown", "log in once with 'ssh HOST'"),
    (r"(?P<what>\S+: can't open file \S+|\S+: can't find '__main__' module in \S+)",
     "it does not see the directory of the launch",
     "put the store on a shared disk (--store), or set --launcher-option copy=launch"),
    (r"(?P<what>\S+): (?:No such file or directory|not found|command not found)",
     "{what} does not exist there", "set --launcher-option python=/path/to/python3"),
)  # fmt: skip


def ssh_command(host: str, options: Mapping[str, str]) -> list[str]:
    """Return the prefix that runs a command line on ``host``, without password prompts."""
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
    """Return the ssh command that runs ``command`` on ``host``, quoted."""
    return [*ssh_command(host, options), shlex.join(command)]


def ssh_failure_cause(log: str, host: str = "") -> str:
    """Return the host and cause of an ssh failure from its output; empty if unknown."""
    for pattern, cause, remedy in _CAUSES:
        found = re.search(pattern, log)
        if found:
            parts = found.groupdict()
            name = parts.get("host") or host
            why = cause.format(what=parts.get("what") or "")
            return f"host {name}: {why} ({remedy})" if name else f"{why} ({remedy})"
    return ""
