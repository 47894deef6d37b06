"""Removes passwords, tokens and keys from a command line before it is recorded."""

import re
from collections.abc import Sequence

REDACTED = "***"

_NAME = (
    r"(?:[\w.-]*[._-])?(?:password|passwd|passphrase|secret|credentials?|apikey|key|token|auth)"
    r"|[\w.-]*(?:password|passwd|secret|(?:api|access|private)[_-]?key)"
)
_NAMED = re.compile(
    rf"(?<![\w.-])(?P<name>-{{0,2}}(?:{_NAME}))(?P<sign>=|:\s*|\s+)(?P<value>\S+)", re.I
)
_OPTION = re.compile(rf"--?(?:{_NAME})", re.I)
_NO_SECRET = re.compile(
    r"(?:^|[._-])(?:pad|eos|bos|unk|mask|sep|cls|image|special|add|num|per|max|min|sort|group|primary)"
    r"[\w-]*[._-](?:token|key)$",
    re.I,
)
"""Options of training programs whose names only look like those of secrets (``--pad-token``)."""
_URL = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^/\s@]+@", re.I)
_KNOWN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|sk-[\w-]{16,}|xox[abp]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)"
)
"""Forms of tokens: Hugging Face, GitHub, GitLab, OpenAI, Slack, AWS, JSON web tokens."""


def redacted(command: Sequence[str]) -> list[str]:
    """``command`` with secret options, credentials of URLs and tokens as ``***``."""
    found: list[str] = []
    for word in command:
        before = found[-1] if found else ""
        if _OPTION.fullmatch(before) and not _NO_SECRET.search(before):
            found.append(word if word.startswith("--") else REDACTED)
            continue
        found.append(_KNOWN.sub(REDACTED, _URL.sub(rf"\g<scheme>{REDACTED}@", _named(word))))
    return found


def _named(word: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        if _NO_SECRET.search(match["name"]):
            return match[0]
        return f"{match['name']}{match['sign']}{REDACTED}"

    return _NAMED.sub(replaced, word)
