"""Commands in the working folder, with files of lines: what they write, and what they say of a mistake."""

import json
from pathlib import Path

from marked_text import MaskedText

from tasks.cli import main


def write(name, lines):
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_masked(lines, style="mask"):
    """``text.txt`` and ``sidecar.jsonl`` of lines such as ``{Tom} lives in {LOCATION:Paris}``."""
    MaskedText.write(Path(), lines, style)


def lines_of(name):
    return Path(name).read_text(encoding="utf-8").splitlines()


def report(name="report.json"):
    return json.loads(Path(name).read_text(encoding="utf-8"))


def run(command, *settings, **options):
    """The exit status; settings such as ``k=3``, options such as ``word_counts="counts.tsv"``; ``None``: not given."""
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]
    return main([command, *given, *(f"--set={value}" for value in settings)])


def fill(method, *settings, output="filled.txt", **options):
    """The filled lines of ``text.txt``, and what was measured."""
    options = {"input": "text.txt", "report": "report.json"} | options
    assert run("fill", *settings, method=method, output=output, **options) == 0
    return lines_of(output), report(options["report"])["measured"]


def refused(capsys, command, *settings, status=1, **options):
    """The one line on standard error; there is no output."""
    options = {"output": "o"} | options
    capsys.readouterr()  # bars of the libraries
    assert run(command, *settings, **options) == status
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert not Path("o").exists()
    return error
