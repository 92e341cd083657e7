"""The documentation site: no broken link, nothing that needs a network, and every command and section."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tasks import cli
from tasks.parameters.parameter_file import Parameters

ROOT = Path(__file__).parents[2]
PLACES = re.compile(r"`((?:tasks|flows|dashboards|tests|benchmarks|profiles|docs)/[\w./-]+)`")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built with ``strict: true``, so that a link or an anchor that leads nowhere is an error."""
    pytest.importorskip("mkdocs", reason="the extra 'docs' is not installed: make docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", folder]
    built = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True)
    assert built.returncode == 0, built.stderr.decode()
    return folder


def text_of(page):
    """What is read, without the navigation."""
    article = re.search(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)[0]
    return " ".join(re.sub("<[^>]*>", "", article).split())


@pytest.mark.slow
def test_nothing_is_fetched(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)="([^"]*)"', page.read_text("utf-8"))
        assert not [link for link in loaded if "//" in link], page


@pytest.mark.slow
def test_the_reference_has_every_command_and_section(site):
    commands, settings = text_of(site / "reference/commands.html"), text_of(site / "reference/params.html")
    assert not [name for name in cli.COMMANDS if name not in commands]
    assert not [name for name in Parameters.model_fields if name not in settings]


def test_files_of_the_repository_that_pages_name_exist():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "data/README.md", *(ROOT / "docs").rglob("*.md")]
    pages = [page for page in pages if not {"research", "decisions"} & set(page.parts)]
    named = {(page, name) for page in pages for name in PLACES.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 50
    assert not [(page.name, name) for page, name in named if not (ROOT / name).exists()]


def test_each_shipped_file_of_models_and_lists_has_a_source():
    """Large files, and folders of models: the table of ``data/README.md`` names what each was made from."""
    page = (ROOT / "data/README.md").read_text(encoding="utf-8").split("## Files with data in the repository")[1]
    named = tuple(re.findall(r"`([\w/.-]+)`", page))
    listed = subprocess.run(["git", "ls-files", "*"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    data = (".safetensors", ".crfsuite", ".tsv", ".model", "weighing.json", "strong_words.txt", "capitals.txt", ".js")
    shipped = [name for name in listed.splitlines() if name.endswith(data) and not name.startswith("tests/")]
    assert len(shipped) > 10
    assert not [name for name in shipped if not name.startswith(named)]
