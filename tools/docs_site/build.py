"""Build the pages of the documentation."""

import html
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
from markdown_it import MarkdownIt

from docs_site.checks import ROOT, broken_links
from docs_site.gallery import gallery
from paceline.render.html_page import hashed, package_text

DOCS = ROOT / "docs"
OWN = Path(__file__).parent
HEADING = re.compile(r"<h[2-4][^>]*>(.*?)</h", re.DOTALL)
Menu = list[tuple[str, list[tuple[str, str]]]]
"""Sections with titles and links of their pages."""
READER = MarkdownIt("commonmark", {"html": False}).enable("table")


def build(out: Path) -> list[str]:
    """Write the site and return its broken links."""
    pages = dict(_pages())
    pages["search.html"] = ("Search", _search(pages))
    menu = _menu()
    for name, (title, body) in pages.items():
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_document(name, title, body, menu), encoding="utf-8")
    images = sorted((DOCS / "images").iterdir())
    for image in images:
        (out / "images").mkdir(exist_ok=True)
        shutil.copy(image, out / "images" / image.name)
    return broken_links(out)


def _pages() -> Iterator[tuple[str, tuple[str, str]]]:
    """Name, title and body of every page."""
    for path in sorted(DOCS.rglob("*.md")):
        yield str(path.relative_to(DOCS).with_suffix(".html")), _rendered(path.read_text("utf-8"))
    for path in (ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"):
        text = re.sub(r"\]\((?:docs/)([^)]+)\)", r"](\1)", path.read_text("utf-8"))
        yield path.stem.lower() + ".html", _rendered(text)
    yield "commands.html", _rendered(_commands())
    yield "gallery.html", ("Gallery of figures", gallery())


def _rendered(text: str) -> tuple[str, str]:
    """Title and body of a Markdown page, with anchors at headings and links to HTML pages."""
    text = re.sub(r"```(\w+) file=\S+", r"```\1", text)
    tokens = READER.parse(text)
    title, used = "Paceline", set[str]()
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[index + 1].content
            title = heading if token.tag == "h1" else title
            token.attrSet("id", _anchor(heading, used))
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("href", _page_link(str(child.attrGet("href"))))
    body = READER.renderer.render(tokens, READER.options, {})
    # The page's policy forbids style attributes.
    body = re.sub(r' style="text-align:(left|right|center)"', r' class="\1"', body)
    body = body.replace("<table>", '<div class="wide-table"><table>')
    return title.replace("`", ""), body.replace("</table>", "</table></div>")


def _anchor(heading: str, used: set[str]) -> str:
    """The anchor of a heading, in the format of GitHub."""
    plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    anchor, number = plain, 0
    while anchor in used:
        number += 1
        anchor = f"{plain}-{number}"
    used.add(anchor)
    return anchor


def _page_link(target: str) -> str:
    if re.match(r"[a-z]+:", target):
        return target
    path, mark, anchor = target.partition("#")
    for name in ("README", "CHANGELOG", "CONTRIBUTING"):
        path = re.sub(rf"^(?:\.\./)?((?:\.\./)*){name}\.md$", rf"\1{name.lower()}.html", path)
    return re.sub(r"\.md$", ".html", path) + mark + anchor


def _commands() -> str:
    """The help of every command as Markdown."""
    from paceline.cli.main import cli

    parts = ["# Commands\n", "Generated from `paceline COMMAND --help`.\n"]
    context = click.Context(cli, info_name="paceline")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        own = click.Context(command, info_name=name, parent=context, terminal_width=96)
        parts.append(f"## paceline {name}\n\n```text\n{command.get_help(own)}\n```\n")
    return "\n".join(parts)


def _menu() -> Menu:
    """Titles and links of the index, section by section."""
    found: Menu = [("", [("Overview", "index.html")])]
    for line in (DOCS / "index.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            found.append((line[3:], []))
        for name, target in re.findall(r"^\| \[([^]]+)\]\(([^)]+)\)", line):
            found[-1][1].append((name, _page_link(target)))
    reference = next(entries for section, entries in found if section == "Reference")
    reference += [("Commands", "commands.html"), ("Gallery", "gallery.html")]
    return found


def _search(pages: dict[str, tuple[str, str]]) -> str:
    """The page that searches the text of all others, which it contains."""
    index = [
        {
            "name": name,
            "title": title,
            "headings": " ".join(map(_plain, HEADING.findall(body))),
            "text": _plain(re.sub(r"<svg.*?</svg>", "", body, flags=re.DOTALL)),
        }
        for name, (title, body) in pages.items()
    ]
    data = json.dumps(index, ensure_ascii=False).replace("<", "\\u003c")
    return (
        '<h1>Search</h1><p id="count" role="status"></p><ul class="found" id="found"></ul>'
        f'<script type="application/json" id="pages">{data}</script>'
        f"<script>{_own('search.js')}</script>"
    )


def _plain(body: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def _own(name: str) -> str:
    return (OWN / name).read_text(encoding="utf-8")


def _style() -> str:
    return "\n".join((package_text("page.css"), package_text("figure.css"), _own("style.css")))


def _document(name: str, title: str, body: str, menu: Menu) -> str:
    up, style = "../" * name.count("/"), _style()
    policy = (
        f"default-src 'none'; style-src {hashed(style)}; img-src 'self'; "
        f"script-src {hashed(_own('search.js'))}; base-uri 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)} · Paceline</title><style>{style}</style></head>\n"
        f'<body class="has-contents"><div class="measure doc">{_navigation(name, menu, up)}\n'
        f"<main>{body}{_neighbours(name, menu, up)}</main></div></body></html>\n"
    )


def _navigation(name: str, menu: Menu, up: str) -> str:
    links = []
    for section, entries in menu:
        links.append(f"<p>{html.escape(section)}</p>" if section else "")
        for text, target in entries:
            here = ' class="here" aria-current="page"' if target == name else ""
            links.append(f'<a href="{up}{target}"{here}>{html.escape(text)}</a>')
    return (
        f'<nav aria-label="Pages"><form action="{up}search.html" role="search">'
        '<input name="q" type="search" placeholder="Search" aria-label="Search"></form>'
        f"<details><summary>Pages</summary>{''.join(links)}</details></nav>"
    )


def _neighbours(name: str, menu: Menu, up: str) -> str:
    """Links to the previous and the next page, in the order of the menu."""
    pages = [(text, target) for _, entries in menu for text, target in entries if "#" not in target]
    at = next((index for index, (_, target) in enumerate(pages) if target == name), None)
    if at is None:
        return ""
    before, after = pages[at - 1 : at] if at else [], pages[at + 1 : at + 2]
    links = [f'<a rel="prev" href="{up}{to}">← {html.escape(text)}</a>' for text, to in before]
    links = links or ["<span></span>"]
    links += [f'<a rel="next" href="{up}{to}">{html.escape(text)} →</a>' for text, to in after]
    return f'<nav class="steps" aria-label="Previous and next page">{"".join(links)}</nav>'
