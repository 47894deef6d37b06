"""Checks of the documentation: links of the built pages, and spelling of all text."""

import html
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "src/paceline", "tools", "script")
IGNORED = "te"
"""Names that codespell takes for misspelled ones: Transformer Engine."""
SKIPPED = "*/data/*,*/importers/logs/*,*/frameworks/*,tools/mutants.py,*.txt,*.png,*.svg"


def broken_links(out: Path) -> list[str]:
    """Links of the pages in a directory whose page or anchor does not exist."""
    texts = {path: path.read_text("utf-8") for path in sorted(out.rglob("*.html"))}
    anchors = {path: set(re.findall(r' id="([^"]+)"', text)) for path, text in texts.items()}
    wrong = []
    for path, text in texts.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', text):
            if re.match(r"(https?|mailto|data):", target):
                continue
            name, _, anchor = html.unescape(target).partition("#")
            found = (path.parent / name).resolve() if name else path.resolve()
            page = next((one for one in texts if one.resolve() == found), None)
            if not found.is_file() or (anchor and anchor not in anchors.get(page or path, ())):
                wrong.append(f"{path.relative_to(out)}: {target}")
    return wrong


def misspelled() -> list[str]:
    """Words of the documentation and of the source that codespell knows as misspelled."""
    options = ["--skip", SKIPPED, "--ignore-words-list", IGNORED]
    command = [sys.executable, "-m", "codespell_lib", *options, *PROSE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 65):
        raise RuntimeError(done.stderr.strip() or f"codespell ended with {done.returncode}")
    return done.stdout.splitlines()
