"""Finds the cause of a failed installation in the output of pip and the compiler."""

import re
from collections.abc import Sequence

DISK_FULL = "the disk is full", "free disk space, or set PACELINE_ENVIRONMENTS to another disk"

CAUSES: Sequence[tuple[str, str, str]] = (
    (r"no space left on device|errno 28|disk quota exceeded|file too large", *DISK_FULL),
    (
        r"name resolution|name or service not known|connection refused|network is unreachable"
        r"|failed to establish a new connection|connecttimeout|read timed out|max retries"
        r"|proxyerror|certificate verify failed|connection reset",
        "cannot reach the package index",
        "check the network and pip's index settings (pip config list), then run the command again",
    ),
    (
        r"requires-python|requires a different python|requires python",
        "a package does not support this Python",
        "choose another interpreter with --python",
    ),
    (
        r"no matching distribution found for ([^\s]+)",
        "the package index has no {0} for this Python and platform",
        "choose another interpreter with --python",
    ),
    (
        r"no cmake_cxx_compiler|cmake_cxx_compiler not set|command '.*(?:gcc|g\+\+|cc)' failed: no "
        r"such file|no such file or directory: '(?:cmake|gcc|g\+\+|c\+\+|cc|make)'"
        r"|cmake: (?:command )?not found|could not find cmake",
        "a compiler or CMake is missing",
        "install a C++ compiler and CMake (Debian: apt install build-essential cmake)",
    ),
    (
        r"killed signal terminated program|cc1plus: out of memory|virtual memory exhausted",
        "the compiler ran out of memory",
        "close other programs and run the command again to resume",
    ),
    (
        r"fatal error: ([^\s:]+): no such file or directory",
        "the build did not find the header {0}",
        "install the development package that contains it",
    ),
    (r"permission denied: '?([^\s']+)", "cannot write {0}", "check its permissions"),
    (r"do not match the hashes", "a downloaded file is corrupt", "run the command again"),
)
"""Pattern in the log (lower case), cause and remedy; the first match counts."""


def diagnose(log: str) -> tuple[str, str]:
    """Return cause and remedy of a failed installation, from the end of its log."""
    text = log.lower()
    for pattern, cause, remedy in CAUSES:
        found = re.search(pattern, text)
        if found:
            return cause.format(*found.groups()), remedy
    errors = [line.strip() for line in log.splitlines() if re.match(r"\s*\w*error\b", line, re.I)]
    return (errors[-1][:160] if errors else "pip failed"), "see the log"
