"""Reports and rows of an experiment in the current folder."""

import json
from pathlib import Path

from tasks.records.cell import Cell

TOP_K = Cell("chat", "allow_list", "top_k", "minilm", 1)


def rows_of():
    """The rows of the summary."""
    return json.loads(Path("results/summary.json").read_text(encoding="utf-8"))


def report_path(name):
    """The path of a report by its name, such as ``mask/chat/allow_list``."""
    return Path("results/reports", f"{name}.json")


def change(name, edit=lambda report: None, **fields):
    """Replace fields of a report, by its name or path, and edit it; returns it."""
    path = name if isinstance(name, Path) else report_path(name)
    report = json.loads(path.read_text(encoding="utf-8")) | fields
    edit(report)
    path.write_text(json.dumps(report), encoding="utf-8")
    return report
