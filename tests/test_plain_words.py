"""Pages, titles, messages and docstrings are in plain words: short sentences, no idioms, the field's terms."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from tasks import cli
from tasks.results.measures import measures

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), ROOT / "data/README.md", *ROOT.glob("docs/**/*.md"))
)
LONGEST = 25
"""Words in a sentence."""
IDIOMS = re.compile(
    r"\b(told|whoever|anew|in clear|comes ready made|wins? back|gives? away|holds? against|mend(s|ed|ing)?|beside|"
    r"behind|kept|apart|stands? (in|for|beside|behind)|what (is|it|they|we) \w+ (is|are|has))\b",
    re.IGNORECASE,
)


def sentences(page: str) -> list[str]:
    """Sentences of paragraphs and list items: no code, no tables, no headings, no marks of generated blocks."""
    prose = re.sub(r"```.*?```|<!--.*?-->", "", page, flags=re.DOTALL)
    lines = [line for line in prose.splitlines() if not re.match(r" {4}|[|#!]|\[.*\]: ", line)]
    items = re.split(r"\n\s*\n|\n(?=[-*] |\d+\. )", "\n".join(lines))
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(item.split()).lstrip("-* ")) for item in items]
    return [one for item in plain for one in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`*\[])", item) if one]


def faults(found: list[str], code: str = r"`[^`]*`") -> list[str]:
    """Sentences that are too long, with each piece of code as one word, or that have an idiom."""
    lengths = [len(re.findall(r"[\w'-]+", re.sub(code, "X", one))) for one in found]
    return [one for one, words in zip(found, lengths, strict=True) if words > LONGEST or IDIOMS.search(one)]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_short_sentences_without_idioms(name):
    found = sentences((ROOT / name).read_text(encoding="utf-8"))
    assert found
    assert not faults(found)


def test_helps_and_titles_have_short_sentences_without_idioms():
    found = [each.title for each in measures()]
    for module in map(importlib.import_module, {**cli.COMMANDS, **cli.plugin_commands()}.values()):
        text = re.split(r"\n\s*[Ee]xamples?:", module.__doc__)[0]
        found += [" ".join(one.split()) for one in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`'-])|\n\s*\n", text)]
        found.append(module.SUMMARY)
    assert not faults(found, r"'[^']*'|`[^`]*`")


def prose_of(path):
    """Docstrings, messages and comments, without code, options, and names of one word or of fields in reports."""
    text = path.read_text(encoding="utf-8")
    values = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    found = re.findall(r"(?<!\S)# .*", text)
    found += [value for value in values if isinstance(value, str) and " " in value]
    return [re.sub(r"``.*?``|--[\w-]+( \S+)?|behind a switch( point)?|behind\.1 word", "", one) for one in found]


@pytest.mark.parametrize("package", ["dashboards", "flows", "tasks"])
def test_docstrings_messages_and_comments_have_no_idioms(package):
    paths = sorted((ROOT / package).rglob("*.py"))
    assert paths
    held = {path.relative_to(ROOT).as_posix(): [one for one in prose_of(path) if IDIOMS.search(one)] for path in paths}
    assert {name: found for name, found in held.items() if found} == {}
