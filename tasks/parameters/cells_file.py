"""``cells.yaml``: a row for each cell, and for each stanza of ``dvc.yaml`` the rows that it runs over.

DVC's ``foreach`` runs over a mapping and can leave cells out, unlike a full product of dimensions. Only this module
derives the experiment from ``params.yaml``. ``compare`` defines the cells (``tasks.records.cells``), ``tuned_fillers``
the base of a tuned filler, and ``speech`` the recordings and lists.

A row has a cell's dimensions, and the values of paths that a template of DVC cannot make of them. Columns with the name
of a command are further options of it (``tasks.parameters.cell_options``).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tasks.errors import ParameterError
from tasks.files.atomic_file import atomic_writer
from tasks.filling.methods.distilled import Distilled, Source
from tasks.language_model.settings import MarkerUse
from tasks.masking.every_tagger import EVERY_TAGGER
from tasks.parameters.cell_options import CELLS_FILE
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
NO_FILE = "data/word_counts.tsv"
"""A dependency that a stage has anyway, in place of a user's word list or of a source of an audit's attackers."""
TABLE = "evaluate"
"""The stanza of all cells with a language model. Its rows come first, and others refer to them."""
_HEAD = """\
# The cells of each stanza of dvc.yaml: &c1 names a row, *c1 is the same row again. 'palimpsest cells' writes this from
# params.yaml, as 'palimpsest plan' and 'palimpsest run' do before they read the graph: change `compare` there.
cells:
"""
Entry = dict[str, Any]


def cells_text(parameters: Parameters) -> str:
    """The content of ``cells.yaml``, one line an entry."""
    lines, found = [_HEAD], graph_cells(parameters)
    anchors = {id(row): f"c{number}" for number, row in enumerate(found[TABLE].values(), start=1)}
    for step, entries in found.items():
        if not isinstance(entries, dict) or not entries:
            lines.append(f"  {step}: {_flow(entries)}\n")
            continue
        lines.append(f"  {step}:\n")
        for key, entry in entries.items():
            anchor = anchors.get(id(entry))
            # Without the braces, so that a key such as `no` is quoted like a value.
            name = _flow({key: None})[1:].removesuffix(": null}")
            if anchor and step != TABLE:
                lines.append(f"    {name}: *{anchor}\n")
            else:
                lines.append(f"    {name}: {f'&{anchor} ' if anchor else ''}{_flow(entry)}\n")
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


def graph_cells(parameters: Parameters) -> dict[str, Any]:
    """The rows of each stanza by the part of its stages' names after the ``@``; the fillers and recognisers."""
    compare = parameters.compare
    rows = {cell: _row(cell, parameters) for cell in expected_cells(compare)}
    for cell in audited_cells(compare):
        rows[cell] |= _known(cell, parameters)
    cells = [cell for cell in rows if cell.method != NO_LANGUAGE_MODEL]
    drawn = {
        cell: settings
        for cell in filter(is_filled, cells)
        if isinstance(settings := parameters.filling[str(cell.method)], Distilled)
    }
    filled = [cell for cell in cells if is_filled(cell) and cell not in drawn]
    audited, recognised = audited_cells(compare), recognised_cells(compare)
    with_words = [cell for cell in recognised if cell.dataset in compare.speech_datasets]
    with_lists = [cell for cell in recognised if cell.dataset in compare.rescored_datasets]

    def of(chosen: Iterable[Cell]) -> dict[str, Entry]:
        return {cell_key(cell): rows[cell] for cell in chosen}

    def by_model(step: str, chosen: list[Cell]) -> dict[str, dict[str, Entry]]:
        return {
            step: of(cell for cell in chosen if cell.method != NO_LANGUAGE_MODEL),
            f"{step}_alone": of(cell for cell in chosen if cell.method == NO_LANGUAGE_MODEL),
        }

    return {
        TABLE: of(cells),
        # Only the compared ones: params.yaml may describe others.
        "corpus": {name: {"dataset": name, "source": parameters.corpora[name].source} for name in compare.datasets},
        "mask": dict(_masked(parameters)),
        "train_filler": parameters.pretrained_fillers(),
        "tune_filler": {cell_key(cell): _tuned(cell, parameters) for cell in tunings(parameters)},
        "fill": of(cell for cell in filled if cell.filler),
        "fill_control": of(cell for cell in filled if not cell.filler),
        "distil": {cell_key(cell): _distilled(cell, settings) for cell, settings in drawn.items()},
        "unmasked": dict(_unmasked(parameters)),
        "fluency": {str(cell.dataset): {"dataset": cell.dataset} for cell in cells if is_filled(cell)},
        "conclusion": dict(_concluded(parameters)),
        "examples": {cell_key(cell): entry for cell, entry in _examples(parameters)},
        "adapt": of(cell for cell in cells if cell.method != PRETRAINED),
        "audit": of(c for c in audited if c.filler and c.filler not in parameters.tuned_fillers),
        "audit_tuned": of(cell for cell in audited if cell.filler in parameters.tuned_fillers),
        "audit_control": of(cell for cell in audited if is_filled(cell) and not cell.filler),
        "audit_oracle": of(cell for cell in audited if cell.method == ORACLE),
        "audit_private": of(cell for cell in audited if cell.method in compare.private),
        "unlearning": dict(_unlearned(parameters)),
        "speech": dict(_brought(compare.speech_datasets, parameters.speech.corpora)),
        "nbest": dict(_brought(compare.rescored_datasets, parameters.speech.nbest)),
        "references": dict(_references(parameters)),
        # A recogniser that no dataset needs is not trained.
        "recognisers": list(compare.recognisers) if compare.speech_datasets else [],
        "recogniser": f"models/{next(iter(compare.recognisers), 'recogniser')}",
        "tune_fusion": dict(_tuned_fusion(compare)),
        **by_model("recognise", with_words),
        **by_model("rescore", with_lists),
    }


def _row(cell: Cell, parameters: Parameters) -> Entry:
    """The row of a cell: its dimensions and path, and if it has a language model that, its text and its weights."""
    row = _named(cell)
    if cell.method == NO_LANGUAGE_MODEL:
        return row
    row |= {"text": training_text(cell), "model": _model(cell)}
    if cell.filler:
        row["folder"] = _filler_folder(cell.filler, cell, parameters)
    if cell.dataset in parameters.compare.speech_datasets:
        row["weights"] = PRETRAINED if cell.method == PRETRAINED else ADAPTED
    return row | {"adapt": _adaptation(cell, parameters.compare)}


def _known(cell: Cell, parameters: Parameters) -> Entry:
    """Models and documents that the attackers of ``audit.ladder`` have. A source that none has is replaced among the
    dependencies by ``NO_FILE``."""
    ladder = parameters.audit.ladder if is_filled(cell) else []
    oracle = Cell(dataset=cell.dataset, method=ORACLE, seed=cell.seed)
    found = {"released": _model(cell), "raw": _model(oracle), "background": str(parameters.audit.background)}
    asked = {f"{rung}-model": found[rung] for rung in ("released", "raw") if rung in ladder}
    used = {f"for_{rung}": source if rung in ladder else NO_FILE for rung, source in found.items()}
    return used | ({"audit": asked} if asked else {})


def _named(cell: Cell) -> Entry:
    return {name: value for name, value in cell.as_dict().items() if value is not None} | {"path": cell.path}


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
            for dataset in compare.datasets
        ]
    texts += [
        (dataset, "speech", f"data/private/speech_references/{dataset}.txt", compare.recognised_techniques)
        for dataset in (*compare.speech_datasets, *compare.rescored_datasets)
    ]
    for dataset, part, text, techniques in texts:
        for technique in techniques:
            yield (
                f"{part}-{dataset}-{technique}",
                {
                    "dataset": dataset,
                    "technique": technique,
                    "part": part,
                    "lists": _lists_of(technique, parameters),
                    "text": text,
                    "report": MASK_REPORTS[part],
                    "mask": {"languages": languages} if languages else {},
                },
            )


def _lists_of(technique: str, parameters: Parameters) -> str:
    """The user's word list of a technique, the folder of several, or ``NO_FILE``.

    ``ParameterError`` if a technique's lists are in several folders.
    """
    files = parameters.masking[technique].files
    if len(files) < 2:
        return files[0] if files else NO_FILE
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


def _unmasked(parameters: Parameters) -> Iterator[tuple[str, Entry]]:
    part = "train" if EVERY_TAGGER in parameters.compare.techniques else "reader"
    for dataset in parameters.compare.datasets if _has_reader(parameters) else []:
        yield dataset, {"dataset": dataset, "reader": f"{part}/{EVERY_TAGGER}"}


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
    return _named(cell) | {"base": _filler_folder(base, cell, parameters)}


def _distilled(cell: Cell, settings: Distilled) -> Entry:
    """Without a contrast or a mask the writing model replaces theirs among the dependencies."""
    models = {option: _model(_source(cell, source)) for option, source in settings.sources.items()}
    used = {option.replace("-", "_"): models.get(option, models["model"]) for option in ("unwanted", "mask-model")}
    return _named(cell) | {"model": models["model"], **used, "distil": models}


def _source(cell: Cell, source: Source) -> Cell:
    """The cell of that model."""
    if source == PRETRAINED:
        return Cell(dataset=cell.dataset, method=PRETRAINED)
    technique = None if source == ORACLE else cell.technique
    return Cell(dataset=cell.dataset, technique=technique, method=source, seed=cell.seed)


def _examples(parameters: Parameters) -> Iterator[tuple[Cell, Entry]]:
    """An entry for each filler, the first one with the controls. A tuned filler has an entry for each technique."""
    compare = parameters.compare
    fills: dict[str | None, list[tuple[str, str]]] = {}
    for each in compare.fills:
        methods = [name for name in each.methods if not isinstance(parameters.filling[name], Distilled)]
        fills.setdefault(each.filler, []).extend(
            (technique, method) for technique in compare.techniques_of(each) for method in methods
        )
    controls = fills.pop(None, [])
    for dataset in compare.datasets:
        for number, (filler, pairs) in enumerate(fills.items()):
            shown = [*pairs, *(controls if number == 0 else [])]
            for only in [None] if filler in parameters.fillers else dict.fromkeys(name for name, _ in pairs):
                cell = Cell(dataset=dataset, technique=only, filler=filler)
                of_cell = ["/".join(pair) for pair in shown if only in (None, pair[0])]
                row = {"folder": _filler_folder(str(filler), cell, parameters), "seed": compare.seeds[0]}
                yield cell, _named(cell) | row | {"examples": {"fills": of_cell}}


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
        return f"data/private/masked/{cell.dataset}/train/{cell.technique}/text.txt"
    return f"data/obfuscated/{cell.path}.txt"


def _adaptation(cell: Cell, compare: CompareSettings) -> Entry:
    """Further options of 'palimpsest adapt' for the cell."""
    private = compare.private.get(str(cell.method))
    if private is None:
        return {"markers": MARKER_USES[str(cell.method)]} if cell.method in BASELINES else {}
    found = {"set": f"adaptation.private={private.model_dump_json(exclude_unset=True)}"}
    if private.unit == "document":
        found["documents"] = f"data/private/corpora/{cell.dataset}/train.documents"
    return found


def _unlearned(parameters: Parameters) -> Iterator[tuple[str, Entry]]:
    compare, settings = parameters.compare, parameters.unlearning
    for dataset in compare.datasets if compare.unlearned else []:
        for seed in compare.seeds:
            cell = Cell(dataset=dataset, seed=seed)
            yield cell_key(cell), _named(cell) | {"masking": settings.technique, "fill": settings.fill}


def _concluded(parameters: Parameters) -> Iterator[tuple[str, Entry]]:
    compare = parameters.compare
    for dataset, asked in compare.conclusions.items():
        corpus = f"data/private/corpora/{dataset}"
        cells = [cell for cell in expected_cells(compare) if cell.dataset == dataset and cell.technique]
        options: Entry = {"pair": ",".join(asked.languages)}
        if asked.language_labels:
            options["language-labels"] = asked.language_labels
        options["versions"] = list(dict.fromkeys(map(training_text, cells)))
        fills = f"data/obfuscated/{dataset}" if any(map(is_filled, cells)) else corpus
        used = {"labels": asked.language_labels or corpus, "fills": fills, "conclusion": options}
        yield dataset, {"dataset": dataset} | used


def _brought(datasets: list[str], found: Mapping[str, object]) -> Iterator[tuple[str, Entry]]:
    for dataset in datasets:
        for part in ("dev", "test"):
            source = getattr(found[dataset], part).source
            yield f"{dataset}-{part}", {"dataset": dataset, "part": part, "source": source}


def _references(parameters: Parameters) -> Iterator[tuple[str, Entry]]:
    compare = parameters.compare
    said = {dataset: f"data/private/speech/{dataset}/test/manifest.jsonl" for dataset in compare.speech_datasets}
    said |= {dataset: f"data/private/nbest/{dataset}/test.jsonl.gz" for dataset in compare.rescored_datasets}
    for dataset, path in said.items():
        yield dataset, {"dataset": dataset, "said": path}


def _tuned_fusion(compare: CompareSettings) -> Iterator[tuple[str, Entry]]:
    """The data sets of fusion weights. Oracle's model finds the weights of all adapted models, since every
    comparison has it. The pretrained model finds its own: text of another domain needs a lower weight."""
    for dataset in compare.speech_datasets:
        oracle = Cell(dataset=dataset, method=ORACLE, seed=compare.seeds[0])
        for name, cell in ((ADAPTED, oracle), (PRETRAINED, Cell(dataset=dataset, method=PRETRAINED))):
            yield f"{dataset}-{name}", {"dataset": dataset, "weights": name, "model": _model(cell)}
