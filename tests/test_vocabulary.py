"""One vocabulary: module names, help texts and error messages use the terms of the field."""

import ast
import re
from functools import cache
from pathlib import Path

import click
import pytest

import paceline
from paceline import errors
from paceline.cli.main import COMMANDS, cli
from paceline.units import plural

ROOT = Path(paceline.__file__).parent
REPOSITORY = Path(__file__).parents[1]
GENERATED_PAGES = ("api.md", "workload-checks.md", "scoreboard.md")
NOT_PROSE = (r"`[^`]*`", r"\]\([^)]*\)", r'"[^"]*"', r"(?i)\bin[- ]place\b", r"\bPCIe cards\b")
"""Code, targets of links, quoted messages, and terms of the field that contain a listed word."""

PHRASES = {
    r"alike": "the same, identical",
    r"as in (?!FILE)": "such as",
    r"asked for|is asked": "requested, required",
    r"at hand": "available",
    r"beside": "next to, compared with, during",
    r"by commas": "comma-separated",
    r"by hand and eye|turned over": "interactively",
    r"cannot be meant|is impossible|are impossible": "out of range (with the range)",
    r"cannot be told|told apart": "within the error margin, not distinguishable",
    r"cards": "NICs",
    r"cry wolf|false alarm": "false positive",
    r"goes? on\b": "continue",
    r"is no (?!longer)|are no (?!longer)": "is not a",
    r"lies in": "is in the range",
    r"mend": "fix",
    r"near:": "did you mean",
    r"once more": "again, repeat",
    r"places?": "topology, nodes x GPUs; path",
    r"products": "GEMM",
    r"says?|said": "print, report, show",
    r"so (many|often|much|long)": "a number",
    r"taught|learnt": "fitted",
    r"tells?|told|telling": "show, report, contain",
    r"there and back": "round trip",
    r"under way": "in flight",
    r"who|whom": "the rank, the framework",
    r"whole numbers?": "integer",
    r"whole training": "complete training run",
    r"words?": "options, text, arguments",
    r"would see": "detectable change",
}
"""Phrases that users do not read, and what to write instead."""

MODULE_WORDS = {
    "alike": "layer_classes",
    "around": "name the parts",
    "beside": "name the parts",
    "chosen": "the noun that was chosen",
    "consistent": "validate_",
    "described": "summary",
    "maker": "factory",
    "observed": "measured_",
    "possible": "validate_",
    "say": "echo",
    "settled": "study_state",
    "slips": "suggestions",
    "tails": "exposed_comm",
    "taught": "fitted",
    "tell": "schedule, report",
    "telling": "schedule, backend",
    "told": "given",
    "waiting": "contention, lag",
    "words": "options, format_, describe_",
}
"""Parts of module names that are not used, and what to use instead."""

_CODE = re.compile(r"'[^']*'|--?[a-z][\w-]*|\$\w+")
"""Quoted commands, names of options and variables are not prose."""


def dialect(text: str) -> list[str]:
    """Phrases of ``text`` with their replacements."""
    prose = _CODE.sub("", text)
    return [
        f"'{found[0]}' (write: {better}) in: {text.strip()}"
        for phrase, better in PHRASES.items()
        if (found := re.search(rf"\b(?:{phrase})(?!\w)", prose, re.IGNORECASE))
    ]


def commands() -> dict[str, click.Command]:
    """Every command and subcommand by its full name."""
    found: dict[str, click.Command] = {"paceline": cli}
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        found[name] = command
        if isinstance(command, click.Group):
            found |= {f"{name} {sub}": one for sub, one in command.commands.items()}
    return found


def test_module_names_are_terms_of_the_field():
    wrong = [
        f"{path.relative_to(ROOT)}: write {MODULE_WORDS[part]}"
        for path in sorted(ROOT.rglob("*.py"))
        for part in path.stem.split("_")
        if part in MODULE_WORDS
    ]
    assert not wrong, wrong


def test_summaries_are_imperative_sentences_of_one_line():
    for name, summary in COMMANDS.items():
        assert not dialect(summary), name
        assert re.fullmatch(r"[A-Z][a-z]+,? .*\.", summary), name
        assert len(summary) <= 66, f"{name} takes two lines in 80 columns"


@pytest.mark.parametrize("name", ["paceline", *COMMANDS])
def test_help_is_plain_technical_english(name):
    for full, command in commands().items():
        if full.split()[0] != name:
            continue
        texts = [command.help or "", *(getattr(one, "help", None) or "" for one in command.params)]
        wrong = [line for text in texts for line in dialect(text)]
        assert not wrong, f"{full}: {wrong}"


def test_metavars_name_a_type():
    context = click.Context(cli)
    vague = [
        f"{name} {option.opts[0]}"
        for name, command in commands().items()
        for option in command.params
        if isinstance(option, click.Option) and not option.is_flag
        if option.make_metavar(context) == "TEXT"
    ]
    assert not vague, vague


def test_every_option_has_a_sentence_of_help():
    for name, command in commands().items():
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help and option.help[0].isalpha(), f"{name} {option.opts[0]}"


@cache
def error_classes() -> frozenset[str]:
    known = {name for name, one in vars(errors).items() if isinstance(one, type)}
    return frozenset(known | {"PluginError", "fail"})


def messages(path: Path):
    """Line and text of each error in a module; what is formatted into it is left out."""
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if name in error_classes():
                for argument in call.args:
                    yield call.lineno, _text(argument)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return "X"


def test_error_messages_are_plain_technical_english():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {one}"
        for path in sorted(ROOT.rglob("*.py"))
        for line, text in messages(path)
        for one in dialect(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_counts_have_the_grammar_of_their_noun():
    assert [plural(n, "launch") for n in (0, 1, 2)] == ["0 launches", "1 launch", "2 launches"]
    assert plural(2, "study") == "2 studies"
    assert plural(90_000, "row") == "90,000 rows"
    assert plural(2, "delay") == "2 delays"
    assert plural(3, "process") == "3 processes"


PAGES = sorted(
    [
        *(path for path in (REPOSITORY / "docs").rglob("*.md") if path.name not in GENERATED_PAGES),
        *(REPOSITORY / name for name in ("README.md", "CHANGELOG.md", "benchmarks/README.md")),
    ]
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_documentation_is_plain_technical_english(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    for pattern in NOT_PROSE:
        prose = re.sub(pattern, "", prose)
    wrong = [one for line in prose.splitlines() for one in dialect(line)]
    assert not wrong, "\n".join(wrong)
