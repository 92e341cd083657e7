"""An experiment whose reports are written by hand: every number is made up, so every answer can be looked up here.

The layout is that of ``dvc.yaml``; the hashes of outputs and inputs fit each other, as they do in a real one. The
reports are in ``handmade_experiment.yaml``.
"""

import hashlib
import json
import math
import re
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import yaml

from tasks.parameters.parameter_file import read_parameters
from tasks.records.cell import Cell
from tasks.records.cells import expected_cells, is_filled, stage_name

ROOT = Path(__file__).parent.parent
TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
SIGNATURE = "ppl|unit=word|norm=1|vocab=0a1b2c3d|eos=yes|unk=in|context=sentence"
COMMIT = TABLE["in_every_report"]["code"]["commit"]
MASKED = TABLE["masked"]
SENTENCES, TARGETS = 50, 8
STEPS = {"perplexity": "evaluate", "fuse": "recognise"}
"""Of ``dvc.yaml``, where a command has another name."""
FEW = {"techniques": ["allow_list"], "baselines": ["baseline1"], "fills": [{"filler": "minilm", "methods": ["top_k"]}]}
"""Changes of ``compare`` that leave four cells: pretrained, Oracle, Baseline1 and Top-K."""


def perplexities_of(cell: Cell) -> tuple[float, float]:
    """Over all words and over known words."""
    numbers = TABLE["perplexities"][str(cell.method)]
    whole, known = numbers[cell.technique] if cell.technique else numbers
    # Another seed gives other numbers: 1 % more for each.
    factor = 1 + 0.01 * ((cell.seed or 1) - 1)
    return whole * factor, known * factor


def make_experiment(folder: Path, k: int = 10, **changes: Any) -> Path:
    """Write ``params.yaml``, ``results/reports`` and ``results/scores`` into ``folder``.

    ``k`` is the number of candidates; another one gives another hash to all that follows from Top-K. ``changes``
    replace keys of ``compare``.
    """
    document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    document["language_model"]["adaptation"]["epochs"] = 2.0
    compare = document["compare"] = {
        "datasets": ["chat"],
        "techniques": list(MASKED),
        "baselines": ["baseline0", "baseline1"],
        "fills": [{"filler": "minilm", "methods": ["top_1", "top_k", "sample"]}, {"methods": ["unigram"]}],
        "seeds": [1],
        **{name: [] for name in ("taggers", "detectors", "gold_sets", "recognisers")},
        **changes,
    }
    document["corpora"] = {name: document["corpora"]["chat"] for name in compare["datasets"]}
    fillers = [fills["filler"] for fills in compare["fills"] if "filler" in fills]
    document["fillers"] = dict.fromkeys(fillers, document["fillers"]["minilm"])
    document["filling"]["top_k"]["k"] = k
    lists = {"source": "lists.jsonl"}
    document["speech"]["nbest"] = {name: {"dev": lists, "test": lists} for name in changes.get("rescored_datasets", [])}
    document["evaluation"] = {"bootstrap_samples": 100, "confidence": 0.95, "seed": 1}
    document["tracking"]["uri"] = f"sqlite:///{folder / 'mlflow.db'}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    writer = _Writer(folder, document, f"k={k}")
    writer.shared_stages()
    cells = expected_cells(read_parameters(folder / "params.yaml").compare)
    for cell in cells:
        writer.cell(cell)
    writer.data_sets(cells)
    return folder


def filled(template: Any, values: dict[str, Any]) -> Any:
    """A part of the table with its values: ``{name}`` alone is the value itself, in a longer text it is written out."""
    if isinstance(template, dict):
        return {name: filled(part, values) for name, part in template.items()}
    if isinstance(template, list):
        return [filled(part, values) for part in template]
    if not isinstance(template, str):
        return template
    alone = re.fullmatch(r"\{(\w+)\}", template)
    return values[alone[1]] if alone else template.format(**values)


class _Writer:
    def __init__(self, folder: Path, parameters: dict[str, Any], state: str) -> None:
        self.folder, self.parameters, self.state = folder, parameters, state
        self.clock = 0

    def section(self, *names: str | None) -> Any:
        return reduce(getitem, names, self.parameters)

    def hash(self, path: str) -> str:
        varies = path.startswith(("data/obfuscated", "models/adapted")) and "top_k" in path
        return hashlib.sha256(f"{path}{self.state if varies else ''}".encode()).hexdigest()

    def report(self, step: str, cell: Cell | None = None, more: dict[str, Any] | None = None, **values: Any) -> None:
        """Write the report of a step with these values and those of the cell; ``more`` was measured besides."""
        self.clock += 30
        of_cell = {**cell.as_dict(), "path": cell.path, "of": stage_name(cell, STEPS.get(step, step))} if cell else {}
        values = {"step": step, **of_cell, **values}
        report = {"cell": cell.as_dict() if cell else {}, "seed": cell.seed if cell else None, "parameters": {}}
        report |= filled(TABLE["reports"][step], values)
        name = report.pop("report")
        report["measured"] |= more or {}
        for paths in ("inputs", "outputs"):
            report[paths] = {path: self.hash(path) for path in report.get(paths, []) if path}
        report |= TABLE["in_every_report"] | {
            "stage": step,
            "command": ["palimpsest", step, "--params", "params.yaml"],
            "started": f"2026-11-20T10:{self.clock // 60 % 60:02d}:{self.clock % 60:02d}+00:00",
        }
        path = self.folder / "results" / "reports" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report), encoding="utf-8")

    def shared_stages(self) -> None:
        settings = self.section("generic")
        self.report("corpora", name="generic", of="generic", output="data/generic", settings=settings)
        for name, settings in self.section("corpora").items():
            output = f"data/private/corpora/{name}"
            self.report("corpora", name=name, of=f"corpus@{name}", output=output, settings=settings)
        self.report("count_words")
        for name, settings in self.section("fillers").items():
            self.report("train_filler", filler=name, settings=settings)
        model = self.section("language_model")
        self.report("vocabulary", **model)
        self.report("pretrain", curve=list(curve(7.0, 5.9)), **model)
        for dataset in self.section("compare", "datasets"):
            for technique in self.section("compare", "techniques"):
                settings = self.section("masking", technique) | {"marker_style": "mask"}
                share = MASKED[technique]
                of_mask = {"settings": settings, "share": share, "words": round(80_000 * share)}
                self.report("mask", dataset=dataset, technique=technique, **of_mask)

    def data_sets(self, cells: list[Cell]) -> None:
        for dataset in self.section("compare", "datasets"):
            raw = f"data/private/corpora/{dataset}/train.txt"
            unmasked = dict.fromkeys(self.section("compare", "techniques"), TABLE["unmasked"])
            self.report("unmasked", dataset=dataset, texts=[raw], measured={"techniques": unmasked})
            if paths := [cell.path for cell in cells if is_filled(cell) and cell.dataset == dataset]:
                texts = [raw, *(f"data/obfuscated/{path}.txt" for path in paths)]
                measured = {"by_fill": dict.fromkeys(paths, TABLE["fluency"])}
                settings = self.section("fluency")
                self.report("fluency", dataset=dataset, texts=texts, settings=settings, measured=measured)

    def cell(self, cell: Cell) -> None:
        text = f"data/private/corpora/{cell.dataset}/train.txt"
        if cell.technique:
            text = f"data/private/masked/{cell.dataset}/train/{cell.technique}/text.txt"
        if is_filled(cell):
            restored = TABLE["restored"][str(cell.method)]
            measured = {"restored": restored, "restored_ci": [restored * 0.9, restored * 1.1]}
            folder = cell.filler and f"models/fillers/{cell.filler}"
            settings = self.section("filling", cell.method)
            self.report("fill", cell, text=text, folder=folder, settings=settings, **measured)
            text = f"data/obfuscated/{cell.path}.txt"
        model = "models/pretrained"
        if cell.seed is not None:
            model = f"data/private/models/{cell.path}" if cell.method == "oracle" else f"models/adapted/{cell.path}"
            adaptation = self.section("language_model", "adaptation")
            falling = list(curve(6.1, math.log(perplexities_of(cell)[0])))
            self.report("adapt", cell, text=text, model=model, adaptation=adaptation, curve=falling)
        if cell.method == "no_language_model":
            self.recognise(cell, None)
            return
        self.evaluate(cell, model)
        compare = self.parameters["compare"]
        techniques = compare.get("speech_techniques") or compare["techniques"]
        spoken = (*compare.get("speech_datasets", []), *compare.get("rescored_datasets", []))
        if cell.dataset in spoken and cell.technique in (None, *techniques):
            self.recognise(cell, model)

    def evaluate(self, cell: Cell, model: str) -> None:
        whole, known = perplexities_of(cell)
        measured = {
            **{"whole": whole, "whole_ci": [whole * 0.97, whole * 1.03], "quarter": whole / 4},
            **{"known": known, "known_ci": [known * 0.97, known * 1.03], "bits": math.log2(whole) / 5},
            "masked_words": {technique: masked_words(cell, technique) for technique in MASKED},
        }
        settings = self.section("evaluation")
        self.report("perplexity", cell, model=model, evaluation=settings, signature=SIGNATURE, **measured)
        swing = 0.3 + int(hashlib.sha256(cell.path.encode()).hexdigest()[:2], 16) / 256
        write_scores(self.folder / "results" / "scores" / f"{cell.path}.tsv", whole, known, swing, cell)

    def recognise(self, cell: Cell, model: str | None) -> None:
        # Another seed makes one error more.
        errors = TABLE["errors"].get(str(cell.method), 140) + ((cell.seed or 1) - 1)
        rate = errors / (SENTENCES * 20)
        grid = [
            {"lm_weight": weight, "insertion_bonus": bonus, "wer": rate + 0.1 * abs(weight - 0.4) + 0.01 * bonus}
            for weight in (0.2, 0.4)
            for bonus in (0.0, 1.0)
        ]
        tuned = {"lm_weight": 0.4, "insertion_bonus": 0.0, "dev": {"wer": rate, "grid": grid}}
        rescored = cell.dataset in self.section("compare").get("rescored_datasets", [])
        if cell.method == "oracle" and not rescored:
            self.report("tune-fusion", dataset=cell.dataset, model=model, tuned=tuned)
        of_masked = {"words": 100, "wer": 2 * rate, "wer_ci": None, "recall": 1 - 2 * rate}
        measured = {
            **{"errors": errors, "wer": rate, "wer_ci": [rate - 0.01, rate + 0.01], "half": rate / 2},
            **{"difference": rate - 0.175, "difference_ci": [rate - 0.18, rate - 0.17]},
            **{"lm_weight": 0.4 if model else None, "insertion_bonus": 0.0 if model else None},
            "masked_errors": dict.fromkeys(MASKED, of_masked),
        }
        more = tuned if model and rescored else {}
        self.report("rescore" if rescored else "fuse", cell, more, model=model, **measured)
        write_word_errors(self.folder / "results" / "scores" / f"{cell.path}.errors.tsv", errors)


def write_word_errors(path: Path, errors: int) -> None:
    """Substitutions spread over the utterances, one more in the first ones where they do not divide."""
    path.parent.mkdir(parents=True, exist_ok=True)
    wrong = [errors // SENTENCES + (number < errors % SENTENCES) for number in range(SENTENCES)]
    lines = ["utterance_id\tall:units\tall:errors", *(f"u{number:03d}\t20\t{n}" for number, n in enumerate(wrong))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def curve(first: float, last: float, points: int = 12, every: int = 20) -> Any:
    """A loss that falls from ``first`` to ``last`` nats, with two points of validation."""
    yield {"step": 0, "valid_loss": first}
    for point in range(1, points + 1):
        rest = math.exp(-4 * point / points)
        yield {"step": point * every, "train_loss": last + (first - last) * rest, "learning_rate": 0.001}
    yield {"step": points * every, "valid_loss": last}


def masked_perplexity(cell: Cell, technique: str) -> float:
    """Of a known word that the technique masks: ten times that of all, and seen by Oracle and pretrained alike."""
    return 10 * perplexities_of(cell)[1] * (1 + MASKED[technique])


def masked_words(cell: Cell, technique: str) -> dict[str, Any]:
    """What evaluation measures of the test words that a technique masks."""
    masked = masked_perplexity(cell, technique)
    return {
        **{"words": 100, "share": 0.005, "unknown_words": 50, "perplexity": masked, "perplexity_ci": None},
        **{"perplexity_known": masked, "perplexity_known_ci": [masked * 0.9, masked * 1.1]},
        **{"rest_targets_known": 300, "perplexity_rest_known": 90.0, "perplexity_rest_known_ci": [85.0, 95.0]},
    }


def write_scores(path: Path, whole: float, known: float, swing: float, cell: Cell) -> None:
    """Sentences of eight targets, seven of them known, whose perplexities are exactly those asked for.

    Every other sentence is harder by ``swing`` nats than the mean, and the others easier. One known target and an
    unknown one are masked by each technique.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = ["line", "targets", "log_probability", "known_targets", "known_log_probability"]
    for technique in MASKED:
        for group in ("masked", "masked_known"):
            columns += [f"{group}:{technique}:targets", f"{group}:{technique}:log_probability"]
    lines = [f"# {SIGNATURE}", "\t".join(columns)]
    for number in range(1, SENTENCES + 1):
        wave = swing if number % 2 else -swing
        sums = [-TARGETS * math.log(whole) + wave, -(TARGETS - 1) * math.log(known) + wave]
        values = [number, TARGETS, sums[0], TARGETS - 1, sums[1]]
        for technique in MASKED:
            masked = -math.log(masked_perplexity(cell, technique))
            values += [2, masked + sums[0] - sums[1], 1, masked]
        lines.append("\t".join(map(repr, values)))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
