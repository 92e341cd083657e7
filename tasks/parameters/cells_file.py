"""``cells.yaml``: for each step of ``dvc.yaml`` its cells, with their paths.

DVC's ``foreach`` runs over a mapping and can leave cells out, unlike a full product of dimensions. Only this module
derives the experiment from ``params.yaml``. ``compare`` defines the cells (``tasks.records.cells``), ``tuned_fillers``
the base of a tuned filler, and ``speech`` the recordings and lists.

An entry has plain values only, which is all that DVC puts into a path. ``cell`` are its dimensions and ``path`` is the
folder of its files. ``options`` are extra words of its command. Instead of a missing dependency it names another one
that it has anyway.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tasks.errors import ParameterError
from tasks.files.atomic_file import atomic_writer
from tasks.filling.methods.distilled import Distilled, Source
from tasks.language_model.settings import MarkerUse
from tasks.masking.every_tagger import EVERY_TAGGER
from tasks.parameters.compare_settings import CompareSettings
from tasks.parameters.parameter_file import Parameters
from tasks.records.cell import Cell
from tasks.records.cells import (
    BASELINES,
    MASK_REPORTS,
    NO_LANGUAGE_MODEL,
    ORACLE,
    PRETRAINED,
    audited_cells,
    cell_key,
    expected_cells,
    is_filled,
    reads_raw_text,
    recognised_cells,
)

CELLS_FILE = "cells.yaml"
MODELS, MODELS_OF_RAW_TEXT = "models/adapted", "data/private/models"
"""Folders of adapted models, and of those that were trained on raw text."""
ADAPTED = "adapted"
"""Name of the fusion weights that all adapted models of a data set share."""
MARKER_USES: dict[str, MarkerUse] = {
    "baseline0": "token",
    "baseline1": "ignore",
    "redacted": "remove",
    "dropped": "drop",
}
"""Treatment of markers by an adaptation on masked text; all others have plain text."""
SHIPPED_LISTS = "tasks/masking/lists"
_HEAD = """\
# The cells of the experiment by step, for dvc.yaml. 'palimpsest cells' writes this from params.yaml, as 'palimpsest
# plan' and 'palimpsest run' do before they read the graph: change `compare` there and nothing here.
cells:
"""
Entry = dict[str, Any]


def cells_text(parameters: Parameters) -> str:
    """The content of ``cells.yaml``, one line an entry."""
    lines = [_HEAD]
    for step, entries in graph_cells(parameters).items():
        if not isinstance(entries, dict) or not entries:
            lines.append(f"  {step}: {_flow(entries)}\n")
            continue
        lines.append(f"  {step}:\n")
        # Without the braces, so that a key such as `no` is quoted like a value.
        lines += [f"    {_flow({key: entry})[1:-1]}\n" for key, entry in entries.items()]
    return "".join(lines)


def _flow(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=float("inf"))
    # PyYAML ends a document of one word this way.
    return text.removesuffix("...\n").strip()


def write_cells(parameters: Parameters, folder: Path) -> bool:
    """Write ``cells.yaml`` of the parameters into a project's folder; return whether it changed."""
    path, text = folder / CELLS_FILE, cells_text(parameters)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    with atomic_writer(path) as stream:
        stream.write(text)
    return True


def check_cells(parameters: Parameters, folder: Path) -> None:
    """Raise ``ParameterError`` if ``cells.yaml`` in a project's folder does not match the parameters."""
    path = folder / CELLS_FILE
    if not path.exists() or path.read_text(encoding="utf-8") != cells_text(parameters):
        state = "is older than params.yaml" if path.exists() else "does not exist"
        raise ParameterError(f"{CELLS_FILE} {state}; 'palimpsest cells' updates it")


def graph_cells(parameters: Parameters) -> dict[str, dict[str, Entry] | list[str] | str]:
    """The cells of each step by the part of their stages' names after the ``@``, and the recogniser's folder."""
    compare = parameters.compare
    cells = [cell for cell in expected_cells(compare) if cell.method != NO_LANGUAGE_MODEL]
    with_words = [cell for cell in recognised_cells(compare) if cell.dataset in compare.speech_datasets]
    drawn = {
        cell: settings
        for cell in cells
        if is_filled(cell) and isinstance(settings := parameters.filling[str(cell.method)], Distilled)
    }
    with_lists = [cell for cell in recognised_cells(compare) if cell.dataset in compare.rescored_datasets]
    return {
        # Only the compared ones: params.yaml may describe others.
        "corpus": {name: _corpus(name, parameters) for name in compare.datasets},
        "mask": dict(_masked(parameters)),
        "train_filler": parameters.pretrained_fillers(),
        "tune_filler": {cell_key(cell): _tuned(cell, parameters) for cell in tunings(parameters)},
        "fill": {cell_key(cell): _fill(cell, parameters) for cell in cells if is_filled(cell) and cell not in drawn},
        "distil": {cell_key(cell): _distilled(cell, settings) for cell, settings in drawn.items()},
        "unmasked": dict(_unmasked(parameters)),
        "fluency": {str(cell.dataset): {"cell": {"dataset": cell.dataset}} for cell in cells if is_filled(cell)},
        "conclusion": dict(_concluded(parameters)),
        "examples": {cell_key(cell): entry for cell, entry in _examples(parameters)},
        "adapt": {cell_key(cell): _adapted(cell, parameters) for cell in cells if cell.method != PRETRAINED},
        "evaluate": {cell_key(cell): _named(cell) | {"model": _model(cell)} for cell in cells},
        "audit": {cell_key(cell): _audited(cell, parameters) for cell in audited_cells(compare)},
        "unlearning": dict(_unlearned(parameters)),
        "speech": dict(_brought("speech.corpora", compare.speech_datasets, parameters.speech.corpora)),
        "nbest": dict(_brought("speech.nbest", compare.rescored_datasets, parameters.speech.nbest)),
        "references": dict(_references(parameters)),
        # A recogniser that no dataset needs is not trained.
        "recognisers": list(compare.recognisers) if compare.speech_datasets else [],
        "recogniser": _recogniser(parameters),
        "tune_fusion": dict(_tuned_fusion(compare)),
        "recognise": {cell_key(cell): _recognised(cell, _recogniser(parameters)) for cell in with_words},
        "rescore": {cell_key(cell): _rescored(cell) for cell in with_lists},
    }


def _named(cell: Cell, *typed: str) -> Entry:
    """The names of a cell; ``typed`` are the dimensions with options of their own, which are no labels."""
    dimensions = {name: value for name, value in cell.as_dict().items() if value is not None}
    return {"cell": dimensions, "labels": cell.labels(*typed), "path": cell.path}


def _corpus(name: str, parameters: Parameters) -> Entry:
    return {"cell": {"dataset": name}, "source": parameters.corpora[name].source}


def _masked(parameters: Parameters) -> Iterator[tuple[str, Entry]]:
    compare = parameters.compare
    languages = ",".join(parameters.evaluation.languages)
    texts = [
        (dataset, part, f"data/private/corpora/{dataset}/{part}.txt", compare.techniques)
        for part in ("train", "test")
        for dataset in compare.datasets
    ]
    if _has_reader(parameters) and EVERY_TAGGER not in compare.techniques:
        texts += [
            (dataset, "reader", f"data/private/corpora/{dataset}/train.txt", [EVERY_TAGGER])
            for dataset in _masked_datasets(parameters)
        ]
    texts += [
        (dataset, "speech", f"data/private/speech_references/{dataset}.txt", compare.techniques)
        for dataset in (*compare.speech_datasets, *compare.rescored_datasets)
    ]
    for dataset, part, text, techniques in texts:
        for technique in techniques:
            yield (
                f"{part}-{dataset}-{technique}",
                {
                    "cell": {"dataset": dataset, "technique": technique},
                    "options": {"languages": languages} if languages else {},
                    "path": f"{dataset}/{part}/{technique}",
                    "lists": _lists_of(technique, parameters),
                    "text": text,
                    "report": MASK_REPORTS[part],
                },
            )


def _lists_of(technique: str, parameters: Parameters) -> str:
    """The user's word list of a technique, the folder of several, or the shipped lists' folder.

    ``ParameterError`` if a technique's lists are in several folders.
    """
    files = parameters.masking[technique].files
    if len(files) < 2:
        return files[0] if files else SHIPPED_LISTS
    folders = {str(Path(file).parent) for file in files}
    if len(folders) > 1:
        raise ParameterError(
            f"masking.{technique}: its lists are in {len(folders)} folders ({', '.join(sorted(folders))}). "
            "A stage depends on one. Put them into one folder"
        )
    return folders.pop()


def _has_reader(parameters: Parameters) -> bool:
    """Whether ``params.yaml`` has the technique of the reference reader (``tasks.review``)."""
    settings = parameters.masking.get(EVERY_TAGGER)
    return settings is not None and settings.kind == EVERY_TAGGER


def _masked_datasets(parameters: Parameters) -> list[str]:
    return list(parameters.compare.datasets) if parameters.compare.techniques else []


def _unmasked(parameters: Parameters) -> Iterator[tuple[str, Entry]]:
    part = "train" if EVERY_TAGGER in parameters.compare.techniques else "reader"
    for dataset in _masked_datasets(parameters) if _has_reader(parameters) else []:
        yield dataset, {"cell": {"dataset": dataset}, "reader": f"{dataset}/{part}/{EVERY_TAGGER}"}


def _masked_text(cell: Cell) -> str:
    return f"{cell.dataset}/train/{cell.technique}"


def _filler_folder(name: str, cell: Cell, parameters: Parameters) -> str:
    if name in parameters.fillers:
        return f"models/fillers/{name}"
    return f"models/tuned_fillers/{cell.dataset}/{cell.technique}/{name}"


def base_folder(tuned: str, base: str, tuned_fillers: Collection[str]) -> str:
    """The folder of the base of the tuned filler in the folder ``tuned``."""
    return str(Path(tuned).parent / base) if base in tuned_fillers else f"models/fillers/{base}"


def _rounds(name: str, parameters: Parameters) -> Iterator[str]:
    """The tuned fillers that lead to one, from the first round to itself; empty for an untuned filler."""
    settings = parameters.tuned_fillers.get(name)
    if settings is not None:
        yield from _rounds(str(settings.base), parameters)
        yield name


def tunings(parameters: Parameters) -> list[Cell]:
    """The fillers to tune, one on each masked corpus that they or later rounds of them fill."""
    compare = parameters.compare
    found = (
        Cell(dataset=dataset, technique=technique, filler=name)
        for dataset in compare.datasets
        for technique in compare.techniques
        for fills in compare.fills
        if fills.filler is not None and technique in compare.techniques_of(fills)
        for name in _rounds(fills.filler, parameters)
    )
    return list(dict.fromkeys(found))


def _tuned(cell: Cell, parameters: Parameters) -> Entry:
    base = str(parameters.tuned_fillers[str(cell.filler)].base)
    return _named(cell, "filler") | {
        "filler": _filler_folder(base, cell, parameters),
        "masked": _masked_text(cell),
        "documents": "data/word_counts.tsv",
    }


def _fill(cell: Cell, parameters: Parameters) -> Entry:
    folder = _filler_folder(cell.filler, cell, parameters) if cell.filler else None
    return _named(cell, "method", "seed") | {
        "options": {"filler": folder} if folder else {},
        "filler": folder or "data/word_counts.tsv",
        "masked": _masked_text(cell),
        "documents": f"data/private/corpora/{cell.dataset}/train.documents",
    }


def _distilled(cell: Cell, settings: Distilled) -> Entry:
    models = {option: _model(_source(cell, source)) for option, source in settings.sources.items()}
    used = {option.replace("-", "_"): models.get(option, models["model"]) for option in ("unwanted", "mask-model")}
    return _named(cell, "method", "seed") | {"options": models, "model": models["model"], **used}


def _source(cell: Cell, source: Source) -> Cell:
    """The cell of that model."""
    if source == PRETRAINED:
        return Cell(dataset=cell.dataset, method=PRETRAINED)
    technique = None if source == ORACLE else cell.technique
    return Cell(dataset=cell.dataset, technique=technique, method=source, seed=cell.seed)


def _examples(parameters: Parameters) -> Iterator[tuple[Cell, Entry]]:
    """An entry for each filler, with the controls. A filler tuned on each technique's text, or with different
    fills per technique, has an entry for each technique."""
    compare = parameters.compare
    methods: dict[str, dict[str, list[str]]] = {}
    for fills in compare.fills:
        if fills.filler is not None:
            for technique in compare.techniques_of(fills):
                methods.setdefault(fills.filler, {}).setdefault(technique, []).extend(fills.methods)
    controls = [
        name
        for fills in compare.fills
        if not fills.filler and fills.techniques is None
        for name in fills.methods
        if not isinstance(parameters.filling[name], Distilled)
    ]
    for dataset in compare.datasets:
        for filler, by_technique in methods.items():
            first = next(iter(by_technique.values()))
            alike = all(by_technique.get(technique) == first for technique in compare.techniques)
            options: dict[str | None, Entry]
            if alike and filler in parameters.fillers:
                options = {None: {"technique": compare.techniques, "method": [*first, *controls]}}
            else:
                options = {name: {"technique": name, "method": found} for name, found in by_technique.items()}
            for only, words in options.items():
                cell = Cell(dataset=dataset, technique=only, filler=filler)
                folder = _filler_folder(filler, cell, parameters)
                words |= {"filler": folder, "seed": compare.seeds[0]}
                yield cell, _named(cell) | {"options": words, "filler": folder}


def _model(cell: Cell) -> str:
    if cell.method == PRETRAINED:
        return "models/pretrained"
    return f"{MODELS_OF_RAW_TEXT if reads_raw_text(cell) else MODELS}/{cell.path}"


def training_text(cell: Cell) -> str:
    """The training or adaptation text of the cell's language model."""
    if cell.method == PRETRAINED:
        return "data/generic/train.txt"
    if reads_raw_text(cell):
        return f"data/private/corpora/{cell.dataset}/train.txt"
    if cell.method in BASELINES:
        return f"data/private/masked/{_masked_text(cell)}/text.txt"
    return f"data/obfuscated/{cell.path}.txt"


def _adapted(cell: Cell, parameters: Parameters) -> Entry:
    markers = MARKER_USES.get(str(cell.method))
    options: dict[str, str] = {"markers": markers} if markers else {}
    private = parameters.compare.private.get(str(cell.method))
    if private is not None:
        options["set"] = f"adaptation.private={private.model_dump_json(exclude_unset=True)}"
        if private.unit == "document":
            options["documents"] = f"data/private/corpora/{cell.dataset}/train.documents"
    return _named(cell, "seed") | {"options": options, "text": training_text(cell), "model": _model(cell)}


def _audited(cell: Cell, parameters: Parameters) -> Entry:
    """A text, and the twins of its language model and of a filler tuned for it. Without a fill or tuning there
    is no method, filler or tuning to depend on: its own settings, or the attacks', replace them."""
    typed = ("technique", "method", "seed")
    of_raw_text = "audit" if cell.method == ORACLE else "compare.private"
    options: Entry = {name: value for name, value in cell.as_dict().items() if name in typed and value is not None}
    if cell.filler:
        options["filler"] = _filler_folder(cell.filler, cell, parameters)
    return _named(cell, *typed) | {
        "options": options,
        "text": training_text(cell),
        "filler": options.get("filler", "data/word_counts.tsv"),
        "filling": f"filling.{cell.method}" if is_filled(cell) else of_raw_text,
        "tuning": f"tuned_fillers.{cell.filler}" if cell.filler in parameters.tuned_fillers else "audit",
    }


def _unlearned(parameters: Parameters) -> Iterator[tuple[str, Entry]]:
    compare, settings = parameters.compare, parameters.unlearning
    for dataset in compare.datasets if compare.unlearned else []:
        for seed in compare.seeds:
            cell = Cell(dataset=dataset, seed=seed)
            used = {"masked": f"{dataset}/train/{settings.technique}", "filling": f"filling.{settings.fill}"}
            yield cell_key(cell), _named(cell, "seed") | used


def _concluded(parameters: Parameters) -> Iterator[tuple[str, Entry]]:
    compare = parameters.compare
    for dataset, asked in compare.conclusions.items():
        corpus = f"data/private/corpora/{dataset}"
        cells = [cell for cell in expected_cells(compare) if cell.dataset == dataset and cell.technique]
        options: Entry = {"pair": ",".join(asked.languages)}
        if asked.language_labels:
            options["language-labels"] = asked.language_labels
        options["versions"] = list(dict.fromkeys(map(training_text, cells)))
        needed = {"labels": asked.language_labels or corpus, "masked": f"data/private/masked/{dataset}/train"}
        needed["fills"] = f"data/obfuscated/{dataset}" if any(map(is_filled, cells)) else corpus
        yield dataset, {"cell": {"dataset": dataset}, "options": options} | needed


def _brought(section: str, datasets: list[str], found: Mapping[str, object]) -> Iterator[tuple[str, Entry]]:
    for dataset in datasets:
        for part in ("dev", "test"):
            yield (
                f"{dataset}-{part}",
                {
                    "cell": {"dataset": dataset},
                    "path": f"{dataset}/{part}",
                    "section": f"{section}.{dataset}.{part}",
                    "source": getattr(found[dataset], part).source,
                },
            )


def _references(parameters: Parameters) -> Iterator[tuple[str, Entry]]:
    compare = parameters.compare
    said = {dataset: f"data/private/speech/{dataset}/test/manifest.jsonl" for dataset in compare.speech_datasets}
    said |= {dataset: f"data/private/nbest/{dataset}/test.jsonl.gz" for dataset in compare.rescored_datasets}
    for dataset, path in said.items():
        yield dataset, {"cell": {"dataset": dataset}, "said": path}


def _recogniser(parameters: Parameters) -> str:
    return f"models/{next(iter(parameters.compare.recognisers), 'recogniser')}"


def _tuned_fusion(compare: CompareSettings) -> Iterator[tuple[str, Entry]]:
    """The data sets of fusion weights. Oracle's model finds the weights of all adapted models, since every
    comparison has it. The pretrained model finds its own: text of another domain needs a lower weight."""
    for dataset in compare.speech_datasets:
        oracle = Cell(dataset=dataset, method=ORACLE, seed=compare.seeds[0])
        for name, cell in ((ADAPTED, oracle), (PRETRAINED, Cell(dataset=dataset, method=PRETRAINED))):
            yield (
                f"{dataset}-{name}",
                {"cell": {"dataset": dataset}, "path": f"{dataset}/{name}", "model": _model(cell)},
            )


def _recognised(cell: Cell, recogniser: str) -> Entry:
    if cell.method == NO_LANGUAGE_MODEL:
        needless = {"model": recogniser, "text": recogniser, "tuned": recogniser, "fusion": "search"}
        return _named(cell) | {"options": {}} | needless
    shared = PRETRAINED if cell.method == PRETRAINED else ADAPTED
    weights = f"data/private/fusion_weights/{cell.dataset}/{shared}.json"
    used = {"model": _model(cell), "training-text": training_text(cell), "weights": weights}
    needed = {"model": used["model"], "text": used["training-text"], "tuned": weights, "fusion": "fusion"}
    return _named(cell) | {"options": used} | needed


def _rescored(cell: Cell) -> Entry:
    if cell.method == NO_LANGUAGE_MODEL:
        lists = f"data/private/nbest/{cell.dataset}/test.jsonl.gz"
        return _named(cell) | {"options": {}, "model": lists, "text": lists}
    used = {"model": _model(cell), "training-text": training_text(cell)}
    return _named(cell) | {"options": used, "model": used["model"], "text": used["training-text"]}
