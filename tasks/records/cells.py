"""The cells of an experiment, and the paths of their files in the graph.

The cells come from ``compare`` in ``params.yaml``, never from existing files: a stage that did not run is then an error
and not a shorter table. Paths and stage names follow ``dvc.yaml``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from tasks.parameters.compare_settings import Baseline, CompareSettings
from tasks.records.cell import Cell

NO_LANGUAGE_MODEL = "no_language_model"
"""Name of the recogniser alone: the only cell without a language model, for data sets with speech."""
RESCORE = "rescore"
"""Step, and stage in its reports, that measures word errors by choosing among another recogniser's lists."""
PRETRAINED = "pretrained"
ORACLE = "oracle"
BASELINES: tuple[Baseline, ...] = get_args(Baseline)
MASK_REPORTS = {"train": "mask", "reader": "mask_reader", "test": "mask_test", "speech": "mask_speech"}
"""Folders of reports by masked part of a corpus; ``speech``: the references of word errors, ``reader``: the training
text by the reference reader, if that is no compared technique."""


def expected_cells(compare: CompareSettings) -> list[Cell]:
    """All cells in the order of the table: per dataset the recogniser alone if it has speech, pretrained, Oracle
    and DP-SGD, then per technique the baselines and the fills."""
    return [cell for dataset in compare.datasets for cell in _cells_of(dataset, compare)]


def _cells_of(dataset: str, compare: CompareSettings) -> Iterator[Cell]:
    if dataset in (*compare.speech_datasets, *compare.rescored_datasets):
        yield Cell(dataset=dataset, method=NO_LANGUAGE_MODEL)
    yield Cell(dataset=dataset, method=PRETRAINED)
    for seed in compare.seeds:
        yield Cell(dataset=dataset, method=ORACLE, seed=seed)
    for private in compare.private:
        for seed in compare.seeds:
            yield Cell(dataset=dataset, method=private, seed=seed)
    for technique in compare.techniques:
        columns: list[tuple[str | None, str]] = [(None, baseline) for baseline in compare.baselines]
        for fills in compare.fills:
            if technique in compare.techniques_of(fills):
                columns += [(fills.filler, method) for method in fills.methods]
        for filler, method in columns:
            for seed in compare.seeds:
                yield Cell(dataset=dataset, technique=technique, method=method, filler=filler, seed=seed)


def audited_cells(compare: CompareSettings) -> list[Cell]:
    """The attacked cells: those of ``compare.fills``, and as references those that read the raw text."""
    named = {
        (fills.filler, technique, method)
        for fills in compare.fills
        for technique in compare.techniques_of(fills)
        for method in fills.audited
    }
    cells = expected_cells(compare)
    return [c for c in cells if named and (reads_raw_text(c) or (c.filler, c.technique, c.method) in named)]


def recognised_cells(compare: CompareSettings) -> list[Cell]:
    """The cells with word error rates: of data sets with speech, or with n-best lists."""
    spoken = (*compare.speech_datasets, *compare.rescored_datasets)
    techniques = (None, *compare.recognised_techniques)
    return [c for c in expected_cells(compare) if c.dataset in spoken and c.technique in techniques]


def reads_raw_text(cell: Cell) -> bool:
    """Whether the cell's language model was trained on raw private text: Oracle, and those with DP-SGD."""
    return cell.technique is None and cell.method not in (NO_LANGUAGE_MODEL, PRETRAINED)


def is_filled(cell: Cell) -> bool:
    """Whether the cell's language model was trained on a filled corpus (by a filler or by a control)."""
    return cell.technique is not None and cell.method not in BASELINES


def cell_key(cell: Cell) -> str:
    """The name of a cell in ``cells.yaml`` and stages of ``dvc.yaml``: ``chat-allow_list-minilm-top_k-1``."""
    return cell.path.replace("/", "-")


def stage_name(cell: Cell, step: str) -> str:
    """The stage for a step of a cell: ``fill``, ``adapt``, ``evaluate``, ``audit``, ``recognise`` or ``rescore``.

    ``evaluate@chat-allow_list-minilm-top_k-1``. The pretrained model has a stage of its own. The recogniser alone has
    only its word errors. A cell without a filler has stanzas of its own for ``fill`` and ``audit``.
    """
    if step == "adapt" and cell.method == PRETRAINED:
        return "pretrain"
    if cell.method == NO_LANGUAGE_MODEL:
        step = "rescore_alone" if step == RESCORE else "recognise_alone"
    elif step == "audit" and reads_raw_text(cell):
        step = "audit_oracle" if cell.method == ORACLE else "audit_private"
    elif step in ("audit", "fill") and not cell.filler:
        step += "_control"
    return f"{step}@{cell_key(cell)}"


def perplexity_report(cell: Cell) -> Path | None:
    """The path of the evaluation's report in the folder of reports; ``None`` without a language model."""
    return None if cell.method == NO_LANGUAGE_MODEL else Path("perplexity") / f"{cell.path}.json"


def word_error_report(cell: Cell) -> Path:
    """The path of the report on recognition with the cell's language model in the folder of reports."""
    return Path("word_error_rate") / f"{cell.path}.json"


def evaluation_report(cell: Cell) -> Path:
    """The path of the report that shows a cell as measured: of its perplexity, or of the recogniser alone."""
    return perplexity_report(cell) or word_error_report(cell)


def training_report(cell: Cell) -> Path:
    """The path of the report on the training of the cell's language model in the folder of reports.

    The recogniser alone has no language model: its own report replaces it.
    """
    if cell.method == NO_LANGUAGE_MODEL:
        return word_error_report(cell)
    if cell.method == PRETRAINED:
        return Path("language_model") / "pretrained.json"
    return Path("adapt") / f"{cell.path}.json"


def mask_report(cell: Cell) -> Path | None:
    """The path of the report on masking in the folder of reports; ``None`` if nothing was masked."""
    return Path("mask") / str(cell.dataset) / f"{cell.technique}.json" if cell.technique else None


def fill_report(cell: Cell) -> Path | None:
    """The path of the report on filling in the folder of reports; ``None`` if nothing was filled."""
    return Path("fill") / f"{cell.path}.json" if is_filled(cell) else None


def fluency_report(cell: Cell) -> Path | None:
    """The path of the report on a fill's fluency in the folder of reports; ``None`` if nothing was filled."""
    return Path("fluency") / f"{cell.dataset}.json" if is_filled(cell) else None


def conclusion_report(dataset: str | None) -> Path:
    """The path of the report on languages and labels of a corpus and its fills, in the folder of reports."""
    return Path("conclusion") / f"{dataset}.json"


def unmasked_report(dataset: str | None) -> Path:
    """The path of the report on each technique's unmasked identifiers in a corpus, in the folder of reports."""
    return Path("unmasked") / f"{dataset}.json"


def audit_report(cell: Cell) -> Path:
    """The path of the report on attacks on the cell in the folder of reports."""
    return Path("audit") / f"{cell.path}.json"


def score_file(cell: Cell) -> Path:
    """The path of the per-sentence scores in the folder of scores."""
    return Path(f"{cell.path}.tsv")


def word_error_file(cell: Cell) -> Path:
    """The path of every utterance's word errors in the folder of scores."""
    return Path(f"{cell.path}.errors.tsv")
