"""Lines of log files, which may be huge, compressed, truncated, interleaved or binary."""

import codecs
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from paceline.errors import InputError
from paceline.user_files import opened

CHUNK_BYTES = 1 << 18
LONGEST_LINE = 8192
LARGEST_LOG_BYTES = 1 << 31
GZIP_MAGIC = b"\x1f\x8b"

_BREAKS = re.compile(r"[\n\r\x08]+")
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f\x7f]")
_RANK_PREFIX = re.compile(
    r"\s*(?:"
    r"\[\d+,(?P<openmpi>\d{1,6})\]<std\w{2,6}>:"
    r"|\[(?P<horovod>\d{1,6})\]<std\w{2,6}>:"
    r"|\[(?:rank|default|trainer|worker)(?P<torch>\d{1,6})\]:"
    r"|\[\d+,mpirank:(?P<sagemaker>\d{1,6}),[\w.-]{1,80}\]<std\w{2,6}>:"
    r"|MPI Rank (?P<cntk>\d{1,6}):"
    r"|(?P<srun>\d{1,6}): "
    r"|\[(?P<hydra>\d{1,6})\] (?!Epoch :)"
    r") ?"
)
_CARRIER_PREFIX = re.compile(
    r"\s*(?:"
    r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)(?: std(?:out|err) [FP])?"
    r"|\[pod/[\w./-]{1,200}\]"
    r"|\(\w{1,80} pid=\d{1,10}(?:, ip=[\w.:]{1,60})?\)"
    r"|[a-zA-Z][\w.-]{0,80}-\d{1,5} +\|(?= )"
    r") (?=\S| )"
)
"""Prefixes of log collectors: Docker and Kubernetes (time, pod), Compose, Ray."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line without colours, control characters and rank prefix.

    With ``is_task`` the rank is a Slurm task (``srun -l``), which may run several ranks: it
    separates interleaved lines but does not count ranks.
    """

    text: str
    rank: int | None = None
    is_task: bool = False


def read_lines(path: Path) -> Iterator[LogLine]:
    """Yield the lines of a log file in bounded memory.

    A carriage return or backspace ends a line too, so each state of a progress bar is a line.
    Lines are truncated to `LONGEST_LINE` characters; undecodable bytes become ``\\ufffd``.
    Reading stops after `LARGEST_LOG_BYTES` and at the end of a truncated compressed file.
    """
    for text in _texts(path):
        yield split_rank(text)


def split_rank(text: str) -> LogLine:
    """Strip prefixes of launchers and log collectors (``[rank0]:``, the name of a pod)."""
    rank: int | None = None
    is_task = False
    text = _CONTROL.sub("", text).rstrip()
    for _ in range(4):
        match = _RANK_PREFIX.match(text) or _CARRIER_PREFIX.match(text)
        if match is None:
            break
        if match.lastgroup is not None:
            rank, is_task = int(match[match.lastgroup]), match.lastgroup == "srun"
        text = text[match.end() :]
    return LogLine(text, rank, is_task)


def _texts(path: Path) -> Iterator[str]:
    decoder: codecs.IncrementalDecoder | None = None
    rest, overlong = "", False
    for chunk in read_chunks(path):
        if decoder is None:
            decoder = _decoder_for(chunk)
        pieces = _BREAKS.split(rest + decoder.decode(chunk))
        rest = pieces.pop()
        for piece in pieces:
            if overlong:
                overlong = False
                continue
            yield piece[:LONGEST_LINE]
        if len(rest) > LONGEST_LINE:
            if not overlong:
                yield rest[:LONGEST_LINE]
            rest, overlong = "", True
    if rest and not overlong:
        yield rest


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a plain or gzip file in chunks, up to the first error of an archive."""
    chunks = _raw_chunks(path)
    first = next(chunks, b"")
    whole = chain((first,), chunks)
    remaining = LARGEST_LOG_BYTES
    for chunk in _decompressed(whole) if first.startswith(GZIP_MAGIC) else whole:
        yield chunk
        remaining -= len(chunk)
        if remaining <= 0:
            return


def _raw_chunks(path: Path) -> Iterator[bytes]:
    try:
        with opened(path) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise _unreadable(path, error) from error


def _decompressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress in chunks, so that a truncated archive yields everything before the cut."""
    gzip_format = zlib.MAX_WBITS | 16
    stream = zlib.decompressobj(gzip_format)
    for chunk in chunks:
        data = chunk
        while data:
            try:
                yield stream.decompress(data, CHUNK_BYTES)
            except zlib.error:
                return
            data = stream.unconsumed_tail
            if stream.eof:
                data, stream = stream.unused_data, zlib.decompressobj(gzip_format)


def _unreadable(path: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    return InputError(f"cannot read {path}: {reason}", "check that the file exists and is readable")


def _decoder_for(head: bytes) -> codecs.IncrementalDecoder:
    """UTF-16 if the file has its byte order mark (Windows console redirect), else UTF-8."""
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return codecs.getincrementaldecoder(encoding)(errors="replace")
