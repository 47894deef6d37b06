"""Ranks, nodes, batch and gradient accumulation, from the lines that state them."""

import re
from dataclasses import dataclass, field

from paceline.importers.logs.inference.vocabulary import Vocabulary
from paceline.importers.logs.parsing.log_builder import LogBuilder
from paceline.importers.logs.parsing.printed_numbers import count

_IS = r"[\"']?\s*(?:[.\s]*[:=]|\.{3,}|\|)\s*[\"']?(\d[\d,]{0,11})\b(?![.\d])"
_EACH = r"(?:per[ _](?:device|gpu|rank)(?:[ _](?:train[ _])?batch[ _]size)?)"
_PATTERNS = {
    "ranks": rf"\b(?:dist_)?world[ _]size{_IS}|\bnum[ _](?:processes|gpus|devices|ranks){_IS}"
    rf"|\bNum GPUs(?: used)?{_IS}|\b[Tt]raining on (\d+) (?:GPUs|devices|processes)\b"
    r"|\bDistributed training with (\d+) (?:GPUs|processes)",
    "nodes": rf"\b(?:num_?nodes|nnodes|number of nodes){_IS}",
    "global_batch": rf"\bglobal[ _](?:train[ _])?batch[ _]size{_IS}"
    rf"|\btotal[ _](?:train[ _])?batch[ _]size(?: \(w\. [^)]*\)| \([\d x*]+\))?{_IS}"
    rf"|\beffective[ _]batch[ _]size{_IS}",
    "batch_per_device": r"\b(?:instantaneous )?(?:train[ _])?(?:micro[ _])?batch[ _]size "
    rf"{_EACH}{_IS}"
    rf"|\bper_device_train_batch_size{_IS}|\btrain_micro_batch_size_per_gpu{_IS}",
    "tokens_per_step": r"\btok(?:en)?s?\s*(?:/|per)\s*(?:(?:optimizer|global|training)[ _])?"
    rf"(?:step|iteration|update|batch)(?: will be)?{_IS}",
    "accumulation": rf"\bgradient[ _]accumulation[ _]steps{_IS}|\baccumulate_grad_batches{_IS}"
    rf"|\bgrad_accum(?:_steps)?{_IS}",
}
_IN_TOKENS = re.compile(r"batch[_ -]type\W+(?:tokens?|tok)\b|max[_ ]tokens?[_ ]per[_ ]batch", re.I)
"""Batches of a number of tokens, not of samples (JoeyNMT, OpenNMT, Sockeye)."""
_COMPILED = {name: re.compile(pattern, re.I) for name, pattern in _PATTERNS.items()}
_NUMBERS = ("ranks", "nodes", "global_batch", "batch_per_rank", "sequence_length")
_CODE = re.compile(
    r"^\s*(?:def|class|import|from|return|assert|if|elif|for|while|with|parser)\b"
    r"|\bself\b|\benviron\b|\bargs\.|add_argument"
)
"""Source code that a program prints in front of its log (modded-nanogpt), with its defaults."""
_NEEDLE = re.compile(r"batch|tok|world|num|nodes|gpus|accum|training", re.I)


@dataclass
class JobSettings:
    """Settings stated in a log; a setting with two different values is dropped.

    The patterns of a program's ``vocabulary`` take precedence.
    """

    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    found: dict[str, int] = field(default_factory=dict)
    unclear: set[str] = field(default_factory=set)
    stated: dict[str, str] = field(default_factory=dict)
    finished: bool = False

    def take(self, text: str) -> None:
        """Collect the settings of one line."""
        for name, own in self.vocabulary.settings:
            match = own.search(text)
            if match is not None:
                self.stated[name] = match[1][:100]
                return
        end = self.vocabulary.finished
        self.finished = self.finished or (end is not None and end.search(text) is not None)
        if _NEEDLE.search(text) is None or _CODE.search(text) is not None:
            return
        if _IN_TOKENS.search(text):
            self.unclear |= {"global_batch", "batch_per_device"}
        for name, pattern in _COMPILED.items():
            for match in pattern.finditer(text):
                value = count(next(filter(None, match.groups())))
                if value and self.found.setdefault(name, value) != value:
                    self.unclear.add(name)

    def add_to(self, log: LogBuilder) -> None:
        """Set ranks, nodes and batch, completed by batch = per rank x accumulation x ranks."""
        log.finished = log.finished or self.finished
        for name, text in self.stated.items():
            value = count(text)
            if name in ("model", "precision", "version"):
                setattr(log, name, text)
            elif value and name in _NUMBERS:
                setattr(log, name, value)
            elif name not in _NUMBERS:
                log.facts[name] = text if value is None else float(value)
        known = {name: value for name, value in self.found.items() if name not in self.unclear}
        for name in sorted(self.unclear & self.found.keys()):
            log.warn(f"several values of {name.replace('_', ' ')}, or tokens: none is used")
        if "tokens_per_step" in known:
            log.facts.setdefault("tokens_per_step", float(known["tokens_per_step"]))
        ranks, batch = known.get("ranks"), known.get("global_batch")
        each, accumulation = known.get("batch_per_device"), known.get("accumulation")
        part = (each or 0) * (accumulation or 1)
        if batch and each and ranks and part * ranks != batch:
            log.warn(
                f"{each} samples x {accumulation or 1} x {ranks} ranks is not the stated batch of "
                f"{batch}: the batch is not used"
            )
            batch = None
        elif batch and part and accumulation and not ranks and batch % part == 0:
            ranks = batch // part
        elif part and ranks and not batch and accumulation:
            batch = part * ranks
        log.ranks = log.ranks or ranks
        log.nodes = log.nodes or known.get("nodes")
        log.global_batch = log.global_batch or batch
        if accumulation:
            log.facts["gradient_accumulation"] = float(accumulation)
