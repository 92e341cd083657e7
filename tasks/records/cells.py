"""Which cells an experiment has, and where the graph keeps what is known of each.

The cells come from ``compare`` in ``params.yaml``, never from the files that happen to be there: a stage that did not
run is then an error and not a shorter table. Paths and stage names follow ``dvc.yaml``.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from tasks.parameters.compare_settings import CompareSettings
from tasks.records.cell import Cell
from tasks.results.downstream_names import is_downstream
from tasks.results.fine_tuned_names import is_tuned_in_domain

NO_LANGUAGE_MODEL = "no_language_model"
"""The recogniser by itself: the only cell without a language model, for data sets with speech."""
RESCORE = "rescore"
"""The step, and the stage in its reports, that measures word errors by choosing among another recogniser's lists."""
PRETRAINED = "pretrained"
ORACLE = "oracle"
BASELINES = ("baseline0", "baseline1")


def expected_cells(compare: CompareSettings) -> list[Cell]:
    """All cells in the order of the table: per dataset the recogniser alone where it has speech, pretrained and Oracle,
    then per technique the methods."""
    return [cell for dataset in compare.datasets for cell in _cells_of(dataset, compare)]


def _cells_of(dataset: str, compare: CompareSettings) -> Iterator[Cell]:
    if dataset in (*compare.speech_datasets, *compare.rescored_datasets):
        yield Cell(dataset=dataset, method=NO_LANGUAGE_MODEL)
    yield Cell(dataset=dataset, method=PRETRAINED)
    for seed in compare.seeds:
        yield Cell(dataset=dataset, method=ORACLE, seed=seed)
    for technique in compare.techniques:
        columns = [
            *((None, baseline) for baseline in compare.baselines),
            *((filler, method) for filler in compare.fillers for method in compare.methods),
            *((filler, method) for filler in compare.fillers for method in compare.language_model_methods),
            *((filler, method) for filler in _large_fillers(technique, compare) for method in compare.large_methods),
            *((filler, method) for filler in compare.tuned_fillers for method in compare.tuned_methods),
            *((None, control) for control in compare.controls),
        ]
        for filler, method in columns:
            for seed in compare.seeds:
                yield Cell(dataset=dataset, technique=technique, method=method, filler=filler, seed=seed)


def _large_fillers(technique: str, compare: CompareSettings) -> list[str]:
    return compare.large_fillers if technique in compare.large_techniques else []


def is_filled(cell: Cell) -> bool:
    """Whether the cell's language model was trained on a filled corpus (by a filler or by a control)."""
    return cell.technique is not None and cell.method not in BASELINES


def _kind(cell: Cell, large_fillers: Collection[str]) -> str:
    if cell.technique is None:
        return str(cell.method)
    if cell.method in BASELINES:
        return "baseline"
    if not cell.filler:
        return "control"
    if is_downstream(str(cell.method)):
        return "with_language_model"
    if cell.filler in large_fillers:
        return "large"
    return "tuned" if is_tuned_in_domain(cell.filler) else "filled"


def stage_name(cell: Cell, step: str, large_fillers: Collection[str] = ()) -> str:
    """The stage of ``dvc.yaml`` that computes a step of a cell: ``adapt``, ``evaluate``, ``recognise`` or ``rescore``.

    ``evaluate_filled@chat-allow_list-minilm-top_k-1``. ``large_fillers``: those of ``compare``, which have stages of
    their own; nothing in their names says so.
    """
    if step == "adapt" and cell.method == PRETRAINED:
        return "pretrain"
    if cell.method == NO_LANGUAGE_MODEL:
        return f"{step if step == RESCORE else 'recognise'}_alone@{cell.dataset}"
    parts = (cell.dataset, cell.technique, cell.filler, cell.method, cell.seed)
    if cell.technique is None:
        parts = (cell.dataset, None, None, None, cell.seed)
    return f"{step}_{_kind(cell, large_fillers)}@" + "-".join(str(part) for part in parts if part is not None)


def perplexity_report(cell: Cell) -> Path | None:
    """Path below the folder of reports of what evaluation measured; ``None`` without a language model."""
    return None if cell.method == NO_LANGUAGE_MODEL else Path("perplexity") / f"{cell.path}.json"


def word_error_report(cell: Cell) -> Path:
    """Path below the folder of reports of what recognition with the cell's language model measured."""
    return Path("word_error_rate") / f"{cell.path}.json"


def evaluation_report(cell: Cell) -> Path:
    """The report that says that a cell was measured: of its perplexity, or of the recogniser alone."""
    return perplexity_report(cell) or word_error_report(cell)


def training_report(cell: Cell) -> Path:
    """Path below the folder of reports of what the training of the cell's language model measured.

    The recogniser alone has no language model: its own report stands for it.
    """
    if cell.method == NO_LANGUAGE_MODEL:
        return word_error_report(cell)
    if cell.method == PRETRAINED:
        return Path("language_model") / "pretrained.json"
    return Path("adapt") / f"{cell.path}.json"


def mask_report(cell: Cell) -> Path | None:
    """Path below the folder of reports of what masking measured; ``None`` where nothing was masked."""
    return Path("mask") / str(cell.dataset) / f"{cell.technique}.json" if cell.technique else None


def fill_report(cell: Cell) -> Path | None:
    """Path below the folder of reports of what filling measured; ``None`` where nothing was filled."""
    return Path("fill") / f"{cell.path}.json" if is_filled(cell) else None


def score_file(cell: Cell) -> Path:
    """Path below the folder of scores of the per-sentence scores."""
    return Path(f"{cell.path}.tsv")


def word_error_file(cell: Cell) -> Path:
    """Path below the folder of scores of the word errors of every utterance."""
    return Path(f"{cell.path}.errors.tsv")
