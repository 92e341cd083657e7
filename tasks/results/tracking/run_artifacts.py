"""The files that stand beside a run in MLflow: plots, and made-up sentences as its cell masks and fills them.

The only text among them is that of ``palimpsest examples``, which anybody may read. No corpus is read for it: neither
raw nor masked nor filled text.

Plots that stand beside a run in MLflow: its training curve, and its perplexity among those of other methods. SVG,
numbers and names of cells only.
"""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tasks.records.cell import Cell
from tasks.records.cells import PRETRAINED
from tasks.records.stage_report import read_report
from tasks.results.measures import measure
from tasks.results.plot_panel import Panel, scale_round
from tasks.results.summary.summary_file import summarised_cell

_WIDTH = 720
_STYLE = (
    ".own{--c:#0b5cad}.other{--c:#8a8f98}.valid{--c:#b3430c}text{font:12px sans-serif;fill:var(--c,#333)}"
    ".mark{fill:var(--c)}.grid{stroke:#e3e5e8}.joined,.interval{stroke:var(--c);stroke-width:2;fill:none}"
)


def curve_plot(cell: Cell, curve: Mapping[tuple[str, int], float]) -> str | None:
    """Loss of training and validation in nats a target over optimiser steps; ``None`` without two points."""
    lines = {
        name: sorted((step, value) for (each, step), value in curve.items() if each == name)
        for name in ("train_loss", "valid_loss")
    }
    points = [point for line in lines.values() for point in line]
    if len(points) < 2:
        return None
    panel = Panel(_WIDTH, 320, left=64, right=24, top=34)
    x = scale_round([0.0, *(float(step) for step, _ in points)], *panel.x_range, zero=True)
    y = scale_round([value for _, value in points], *panel.y_range)
    panel.x_axis(x, "optimiser steps")
    panel.y_axis(y)
    for line, kind in zip(lines.values(), ("own", "valid"), strict=True):
        if line:
            panel.path([(x(step), y(value)) for step, value in line], f"joined {kind}")
    for step, value in lines["valid_loss"]:
        panel.mark(x(step), y(value), "circle", "valid", f"{value:.2f} at step {step:,}")
    panel.text(_WIDTH - 24, 38, "training", "own", "end")
    panel.text(_WIDTH - 24, 54, "validation", "valid", "end")
    return _document(panel, f"{cell.path}: loss, nats a target")


def perplexity_plot(cell: Cell, rows: Sequence[Mapping[str, Any]], name: str = "perplexity") -> str | None:
    """A perplexity, by the name of its measure, with its interval, of a cell and of the cells that it compares with:
    those of the same data set, technique (of all techniques, for a reference) and seed. On a logarithmic scale;
    ``None`` without a number.

    The pretrained model is so much worse that it would press all others together: it stands in its own plot only.
    """
    shown = [
        (other, row[name], row.get(f"{name}_ci") or [row[name]] * 2)
        for row in rows
        if _compares(cell, other := summarised_cell(row)) and row.get(name)
    ]
    if not shown:
        return None
    shown.sort(key=lambda entry: entry[1])
    panel = Panel(_WIDTH, 54 + 22 * len(shown) + 38, left=250, right=70, top=34)
    x = scale_round([end for *_, ends in shown for end in ends], *panel.x_range, logarithmic=True)
    panel.x_axis(x, "perplexity")
    for place, (other, perplexity, (least, most)) in enumerate(shown):
        y, kind = panel.top + 20 + 22 * place, "own" if other == cell else "other"
        panel.text(panel.left - 10, y + 4, other.path.removeprefix(f"{other.dataset}/"), kind, "end")
        panel.line(x(least), y, x(most), y, f"interval {kind}")
        panel.mark(x(perplexity), y, "circle", kind, other.path)
        panel.text(_WIDTH - 62, y + 4, f"{perplexity:.1f}", kind)
    title = measure(name).title
    return _document(panel, f"{cell.dataset}: {title[0].lower()}{title[1:]}, with its interval (logarithmic)")


def _compares(cell: Cell, other: Cell) -> bool:
    same_seed = None in (cell.seed, other.seed) or cell.seed == other.seed
    same_technique = None in (cell.technique, other.technique) or cell.technique == other.technique
    pressing = other.method == PRETRAINED and cell.method != PRETRAINED
    return cell.dataset == other.dataset and same_technique and same_seed and not pressing


def _document(panel: Panel, title: str) -> str:
    """The panel as a file that stands by itself."""
    size = f'width="{panel.width:g}" height="{panel.height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {panel.width:g} {panel.height:g}">'
        f'<title>{escape(title)}</title><style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        f'<text class="heading" x="12" y="18">{escape(title)}</text>{"".join(panel.parts)}</svg>\n'
    )


ARTIFACTS_TAG = "palimpsest.files"
"""Tag with a hash of a run's files: publishing again sends none that is there."""
EARLIER_TAG = "palimpsest.artifacts"
"""The same of versions that sent lines of filled text, and DVC's hashes of private files."""
MADE_UP = "samples/made_up.txt"
FOLDERS = ("plots", "samples")


def run_artifacts(
    cell: Cell,
    curve: Mapping[tuple[str, int], float],
    rows: Sequence[Mapping[str, Any]],
    made_up: Mapping[Cell, str],
) -> dict[str, str]:
    """Content of each file by its name; ``made_up``: the texts of ``made_up_texts``."""
    files = {
        "plots/training_curve.svg": curve_plot(cell, curve),
        "plots/perplexity_by_method.svg": perplexity_plot(cell, rows),
        "plots/perplexity_at_switches.svg": perplexity_plot(cell, rows, "perplexity_at_switches"),
        MADE_UP: made_up.get(cell),
    }
    return {name: content for name, content in files.items() if content is not None}


def made_up_texts(reports: str | Path) -> dict[Cell, str]:
    """Made-up sentences raw, masked and filled, by the cell that masks and fills so: those of the page's examples."""
    texts = {}
    for path in sorted(Path(reports, "examples").rglob("*.json")):
        report = read_report(path)
        measured, dataset, seed = report["measured"], report["cell"]["dataset"], report["seed"]
        for entry in measured["by_technique"]:
            for fill in entry["filled"]:
                cell = Cell(dataset, entry["technique"], fill["method"], fill["filler"], seed)
                forms = zip(measured["raw"], entry["masked"], fill["lines"], strict=True)
                texts[cell] = "Made-up sentences, not of the corpus.\n" + "".join(
                    f"\nraw     {raw}\nmasked  {masked}\nfilled  {filled}\n" for raw, masked, filled in forms
                )
    return texts


def fingerprint(files: Mapping[str, str]) -> str:
    """What the tag of a run with these files says."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0{content}".encode())
    return digest.hexdigest()[:16]


def send(artifact_uri: str, tracking_uri: str, files: Mapping[str, str], *, replace: bool) -> None:
    """Put the files into a run's place for artifacts; ``replace`` takes away those that were there."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    repository = get_artifact_repository(artifact_uri, tracking_uri=tracking_uri)
    if replace:
        present = {entry.path for entry in repository.list_artifacts()}
        for folder in present.intersection(FOLDERS):
            repository.delete_artifacts(folder)
    if not files:
        return
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder:
        for name, content in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
        repository.log_artifacts(folder)
