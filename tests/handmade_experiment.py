"""An experiment whose reports are written by hand: every number is made up, so every answer can be looked up here.

The layout is that of ``dvc.yaml``; the hashes of outputs and inputs fit each other, as they do in a real one.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import yaml

from tasks.parameters.cells_file import training_text
from tasks.parameters.parameter_file import read_parameters
from tasks.records.cell import Cell
from tasks.records.cells import expected_cells, is_filled, stage_name

ROOT = Path(__file__).parent.parent
SIGNATURE = "ppl|unit=word|norm=1|vocab=0a1b2c3d|eos=yes|unk=in|context=sentence"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SENTENCES, TARGETS = 50, 8

MASKED = {"allow_list": 0.169, "vocabulary_threshold": 0.119, "entity_tagger": 0.037}
"""Share of words masked."""
PERPLEXITIES = {
    "pretrained": (386.0, 463.0),
    "oracle": (191.6, 227.0),
    "dp_sgd_8": (196.0, 231.0),
    **{
        method: dict(zip(MASKED, numbers, strict=True))
        for method, numbers in {
            "baseline0": ((624.0, 457.0), (455.0, 332.0), (216.0, 253.0)),
            "baseline1": ((427.0, 389.0), (353.0, 302.0), (207.0, 243.0)),
            "redacted": ((430.0, 391.0), (355.0, 303.0), (208.0, 244.0)),
            "dropped": ((460.0, 420.0), (380.0, 330.0), (215.0, 252.0)),
            "top_1": ((476.0, 431.0), (376.0, 321.0), (208.5, 244.0)),
            "top_k": ((445.0, 411.0), (365.0, 317.0), (207.1, 243.0)),
            "sample": ((273.0, 294.0), (249.0, 281.0), (203.0, 240.0)),
            "unigram": ((266.0, 313.0), (236.0, 280.0), (212.0, 248.0)),
        }.items()
    },
}
"""Perplexity over all words and over known words, by method and technique."""
WORD_ERRORS = {"no_language_model": 180, "pretrained": 150, "oracle": 120}
"""Errors on 50 utterances of 20 words; 140 with all other language models."""
RESTORED = {"top_1": 0.081, "top_k": 0.034, "sample": 0.012, "unigram": 0.0007}

MEASURED: dict[str, Any] = yaml.safe_load("""
corpora:
  texts: 12500
  documents: 800
  sentences: {train: 8000, valid: 1000, test: 2000}
  words: {train: 80000, valid: 10000, test: 20000}
  part_documents: {train: 600, valid: 100, test: 100}
  left_out: {too_short: 1000, duplicate: 500}
  package_files: {dataset.json: abababababababababababababababababababababababababababababababab}
count_words: {words: 2400000, different_words: 90000}
train_filler: {steps: 200, valid_perplexity: 101.0, valid_top_1_accuracy: 0.31}
vocabulary: {vocabulary_size: 20000}
# How well every fill reads.
fluency:
  {part_of_speech_match: 0.58, part_of_speech_match_ci: [0.55, 0.61], form_match: 0.47, form_match_ci: [0.44, 0.50],
  repeated: 0.011, repeated_ci: [0.007, 0.017], repeated_before: 0.003, variety: 0.71, places: 1000,
  times_raw_perplexity: 1.84, times_raw_perplexity_ci: [1.71, 1.98], judged_lines: 100}
# What every technique leaves unmasked.
unmasked:
  by: review
  basis: 150 lines read by 1 reviewer
  direct: &sort {unmasked_per_1000: 12.5, unmasked_per_1000_ci: [8.0, 17.5], recall: 0.9, recall_ci: [0.8, 0.95]}
  quasi: *sort
  classes: {}
fill:
  {markers: 1000, fallback_count: 3, distinct_fills: 420, languages: null, expected_restoration_by_frequency: 0.0008}
environment:
  python: 3.11.15
  packages: {palimpsest: 0.1.0, torch: 2.13.0}
  processor: A Processor
  cores: 2
  system: Linux
""")
"""What stages measure that is the same everywhere, by the stage."""

FEW = {"techniques": ["allow_list"], "baselines": ["baseline1"], "fills": [{"filler": "minilm", "methods": ["top_k"]}]}
"""Changes of ``compare`` that leave four cells: pretrained, Oracle, Baseline1 and Top-K."""


def perplexities_of(cell: Cell) -> tuple[float, float]:
    numbers: Any = PERPLEXITIES[str(cell.method)]
    whole, known = numbers[cell.technique] if cell.technique else numbers
    # Another seed gives other numbers: 1 % more for each.
    factor = 1 + 0.01 * ((cell.seed or 1) - 1)
    return whole * factor, known * factor


def make_experiment(folder: Path, state: str = "", **changes: Any) -> Path:
    """Write ``params.yaml``, ``results/reports`` and ``results/scores`` into ``folder``.

    ``changes`` replace keys of ``compare``, except ``k``, the number of candidates. Another ``state`` gives another
    hash to all that follows from Top-K, as another K does.
    """
    k = changes.pop("k", 10)
    document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    document["language_model"]["adaptation"]["epochs"] = 2.0
    document["compare"] = {
        "datasets": ["chat"],
        "techniques": ["allow_list", "vocabulary_threshold", "entity_tagger"],
        "baselines": ["baseline0", "baseline1"],
        "fills": [{"filler": "minilm", "methods": ["top_1", "top_k", "sample"]}, {"methods": ["unigram"]}],
        "seeds": [1],
        "taggers": [],
        "detectors": [],
        "gold_sets": [],
        "recognisers": [],
        **changes,
    }
    document["corpora"] = {name: document["corpora"]["chat"] for name in document["compare"]["datasets"]}
    for name in changes.get("conclusions", {}):
        document["corpora"][name] = {"kind": "files", "source": "tweets.csv", "label_field": "mood"}
        document["conclusion"] = {}
    fillers = [fills["filler"] for fills in document["compare"]["fills"] if "filler" in fills]
    document["fillers"] = dict.fromkeys(fillers, document["fillers"]["minilm"])
    document["filling"]["top_k"]["k"] = k
    lists = {"source": "lists.jsonl"}
    document["speech"]["nbest"] = {name: {"dev": lists, "test": lists} for name in changes.get("rescored_datasets", [])}
    document["evaluation"] = {"bootstrap_samples": 100, "confidence": 0.95, "seed": 1}
    document["tracking"]["uri"] = f"sqlite:///{folder / 'mlflow.db'}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    writer = _Writer(folder, document, state or f"k={k}")
    writer.shared_stages()
    cells = expected_cells(read_parameters(folder / "params.yaml").compare)
    for cell in cells:
        writer.cell(cell)
    for dataset in document["compare"]["datasets"]:
        raw = f"data/private/corpora/{dataset}/train.txt"
        unmasked = dict.fromkeys(document["compare"]["techniques"], MEASURED["unmasked"])
        writer.of_dataset("unmasked", dataset, [raw], {"techniques": unmasked})
        if filled := [cell.path for cell in cells if is_filled(cell) and cell.dataset == dataset]:
            fills = [f"data/obfuscated/{path}.txt" for path in filled]
            writer.of_dataset(
                "fluency", dataset, [raw, *fills], {"by_fill": dict.fromkeys(filled, MEASURED["fluency"])}
            )
    for dataset in document["compare"].get("conclusions", {}):
        # V of 0.1 in the raw text, and a tenth less in each text after it.
        texts = list(dict.fromkeys(map(training_text, cells[1:])))
        found = {text: {"cramers_v": 0.1 * 0.9**place} for place, text in enumerate(texts)}
        writer.of_dataset("conclusion", dataset, texts, {"by_text": found})
    return folder


class _Writer:
    def __init__(self, folder: Path, parameters: dict[str, Any], state: str) -> None:
        self.folder, self.parameters, self.state = folder, parameters, state
        self.clock = 0

    def hash(self, path: str) -> str:
        varies = path.startswith(("data/obfuscated", "models/adapted")) and "top_k" in path
        return hashlib.sha256(f"{path}{self.state if varies else ''}".encode()).hexdigest()

    def report(
        self,
        name: str,
        stage: str,
        dvc_stage: str,
        *,
        inputs: list[str],
        outputs: list[str],
        parameters: dict[str, Any],
        measured: dict[str, Any],
        cell: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self.clock += 30
        document = {
            "version": 1,
            "stage": stage,
            "dvc_stage": dvc_stage,
            "cell": cell or {},
            "measured": measured,
            "warnings": [],
            "parameters": parameters,
            "seed": seed,
            "inputs": {path: self.hash(path) for path in inputs},
            "outputs": {path: self.hash(path) for path in outputs},
            "command": ["palimpsest", stage, "--params", "params.yaml"],
            "code": {"commit": COMMIT, "dirty": False},
            "environment": MEASURED["environment"],
            "started": f"2026-11-20T10:{self.clock // 60 % 60:02d}:{self.clock % 60:02d}+00:00",
            "wall_seconds": 25.5,
            "processor_seconds": 25.0,
            "peak_memory_bytes": 900_000_000,
        }
        path = self.folder / "results" / "reports" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document), encoding="utf-8")

    def shared_stages(self) -> None:
        sections = self.parameters
        corpora = {"generic": ("data/generic", sections["generic"])}
        for name, settings in sections["corpora"].items():
            corpora[name] = (f"data/private/corpora/{name}", settings)
        for name, (output, settings) in corpora.items():
            self.report(
                f"corpora/{name}",
                "corpora",
                "generic" if name == "generic" else f"corpus@{name}",
                inputs=["constraints.txt"],
                outputs=[output],
                parameters=settings,
                measured=MEASURED["corpora"],
                cell={"dataset": name},
                seed=1,
            )
        generic, model = ["data/generic/train.txt", "data/generic/valid.txt"], sections["language_model"]
        self.report(
            "corpora/word_counts",
            "count_words",
            "word_counts",
            inputs=generic[:1],
            outputs=["data/word_counts.tsv"],
            parameters={},
            measured=MEASURED["count_words"],
        )
        for name, settings in sections["fillers"].items():
            self.report(
                f"fillers/{name}",
                "train_filler",
                f"train_filler@{name}",
                inputs=generic,
                outputs=[f"models/fillers/{name}"],
                parameters=settings,
                measured=MEASURED["train_filler"],
                seed=1,
            )
        self.report(
            "language_model/vocabulary",
            "vocabulary",
            "vocabulary",
            inputs=generic[:1],
            outputs=["models/vocabulary.txt"],
            parameters={"language_model.vocabulary": model["vocabulary"]},
            measured=MEASURED["vocabulary"],
        )
        self.report(
            "language_model/pretrained",
            "pretrain",
            "pretrain",
            inputs=[*generic, "models/vocabulary.txt"],
            outputs=["models/pretrained"],
            parameters={f"language_model.{name}": model[name] for name in ("architecture", "pretraining")},
            measured={"curve": list(curve(7.0, 5.9)), "tokens": 700_000, "tokens_per_second": 6100.0},
            seed=1,
        )
        for dataset in sections["compare"]["datasets"]:
            for technique in sections["compare"]["techniques"]:
                masked = f"data/private/masked/{dataset}/train/{technique}"
                self.report(
                    f"mask/{dataset}/{technique}",
                    "mask",
                    f"mask@train-{dataset}-{technique}",
                    inputs=[f"data/private/corpora/{dataset}/train.txt", "data/word_counts.tsv"],
                    outputs=[f"{masked}/text.txt", f"{masked}/sidecar.jsonl"],
                    parameters={**sections["masking"][technique], "marker_style": "mask"},
                    measured={
                        "lines": 8000,
                        "words": 80_000,
                        "masked_words": round(80_000 * MASKED[technique]),
                        "masked_fraction": MASKED[technique],
                        **dict.fromkeys(("marker_language_bits", "most_masked_language", "least_masked_language")),
                    },
                    cell={"dataset": dataset, "technique": technique},
                )

    def of_dataset(self, stage: str, dataset: str, inputs: list[str], measured: dict[str, Any]) -> None:
        self.report(
            f"{stage}/{dataset}",
            stage,
            f"{stage}@{dataset}",
            inputs=inputs,
            outputs=[],
            parameters=self.parameters[stage] if stage != "unmasked" else {},
            measured=measured,
            cell={"dataset": dataset},
        )

    def cell(self, cell: Cell) -> None:
        text = f"data/private/corpora/{cell.dataset}/train.txt"
        if cell.technique:
            text = f"data/private/masked/{cell.dataset}/train/{cell.technique}/text.txt"
        if is_filled(cell):
            self.fill(cell, text)
            text = f"data/obfuscated/{cell.path}.txt"
        model = "models/pretrained"
        if cell.seed is not None:
            model = f"data/private/models/{cell.path}" if cell.method == "oracle" else f"models/adapted/{cell.path}"
            self.adapt(cell, text, model)
        if cell.method == "no_language_model":
            self.recognise(cell, None)
            return
        self.evaluate(cell, model)
        compare = self.parameters["compare"]
        techniques = compare.get("speech_techniques") or compare["techniques"]
        spoken = (*compare.get("speech_datasets", []), *compare.get("rescored_datasets", []))
        if cell.dataset in spoken and cell.technique in (None, *techniques):
            self.recognise(cell, model)

    def fill(self, cell: Cell, text: str) -> None:
        restored = RESTORED[str(cell.method)]
        sidecar = f"data/private/masked/{cell.dataset}/train/{cell.technique}/sidecar.jsonl"
        self.report(
            f"fill/{cell.path}",
            "fill",
            stage_name(cell, "fill"),
            inputs=[*([f"models/fillers/{cell.filler}"] if cell.filler else []), text, sidecar, "data/word_counts.tsv"],
            outputs=[f"data/obfuscated/{cell.path}.txt"],
            parameters=self.parameters["filling"][str(cell.method)],
            measured={
                **MEASURED["fill"],
                "restoration_rate": restored,
                "restoration": {"overall": {"rate_ci": [restored * 0.9, restored * 1.1]}},
            },
            cell=cell.as_dict(),
            seed=cell.seed,
        )

    def adapt(self, cell: Cell, text: str, model: str) -> None:
        last = math.log(perplexities_of(cell)[0])
        adaptation = self.parameters["language_model"]["adaptation"]
        self.report(
            f"adapt/{cell.path}",
            "adapt",
            stage_name(cell, "adapt"),
            inputs=["models/pretrained", text, f"data/private/corpora/{cell.dataset}/valid.txt"],
            outputs=[model],
            parameters={"language_model.adaptation": adaptation, "markers": "none"},
            measured={"curve": list(curve(6.1, last)), "tokens": 180_000, "tokens_per_second": 5800.0},
            cell=cell.as_dict(),
            seed=cell.seed,
        )

    def evaluate(self, cell: Cell, model: str) -> None:
        whole, known = perplexities_of(cell)
        interval = {"perplexity": whole, "perplexity_ci": [whole * 0.97, whole * 1.03]}
        self.report(
            f"perplexity/{cell.path}",
            "perplexity",
            stage_name(cell, "evaluate"),
            inputs=[model, f"data/private/corpora/{cell.dataset}/test.txt"],
            outputs=[f"results/scores/{cell.path}.tsv"],
            parameters={"evaluation": self.parameters["evaluation"]},
            measured={
                **interval,
                "perplexity_known": known,
                "perplexity_known_ci": [known * 0.97, known * 1.03],
                "perplexity_unknown": 50.0,
                "perplexity_unknown_ci": [45.0, 55.0],
                **{name.replace("perplexity", "perplexity_without_markers"): part for name, part in interval.items()},
                "bits_per_character": math.log2(whole) / 5,
                "bits_per_character_ci": None,
                "masked_words": {technique: masked_words(cell, technique) for technique in MASKED},
                "by_frequency": {
                    "rank 1-100": {"targets": 12_000, "perplexity": whole / 4, "perplexity_ci": None},
                    "unknown": {"targets": 420, "perplexity": 50.0, "perplexity_ci": [45.0, 55.0]},
                },
                "by_language": {},
                "oov_rate": 0.021,
                "words": 20_000,
                "sentences": 2000,
                "signature": SIGNATURE,
            },
            cell=cell.as_dict(),
            seed=cell.seed,
        )
        swing = 0.3 + int(hashlib.sha256(cell.path.encode()).hexdigest()[:2], 16) / 256
        write_scores(self.folder / "results" / "scores" / f"{cell.path}.tsv", whole, known, swing, cell)

    def recognise(self, cell: Cell, model: str | None) -> None:
        errors = word_errors(cell)
        rate = errors / (SENTENCES * 20)
        rescored = cell.dataset in self.parameters["compare"].get("rescored_datasets", [])
        of_lists = {
            "insertion_bonus_alone": {"wer": 0.175, "wer_ci": [0.165, 0.185], "insertion_bonus": 0.5},
            "difference_to_insertion_bonus_alone": rate - 0.175,
            "difference_to_insertion_bonus_alone_ci": [rate - 0.18, rate - 0.17],
            "oracle_wer": 0.1,
            "best_first_share": 0.4,
        }
        grid = [
            {"lm_weight": weight, "insertion_bonus": bonus, "wer": rate + 0.1 * abs(weight - 0.4) + 0.01 * bonus}
            for weight in (0.2, 0.4)
            for bonus in (0.0, 1.0)
        ]
        tuned = {"lm_weight": 0.4, "insertion_bonus": 0.0, "dev": {"wer": rate, "grid": grid}}
        encoded = f"data/private/encoded_speech/{cell.dataset}"
        models = [model] if model else []
        if cell.method == "oracle" and not rescored:
            self.report(
                f"tune_fusion/{cell.dataset}/adapted",
                "tune-fusion",
                f"tune_fusion@{cell.dataset}-adapted",
                inputs=["models/recogniser", f"{encoded}/dev.safetensors", *models],
                outputs=[f"data/private/fusion_weights/{cell.dataset}/adapted.json"],
                parameters={"speech.fusion": {}},
                measured=tuned,
                cell={"dataset": cell.dataset},
            )
        of_masked = {"words": 100, "wer": 2 * rate, "wer_ci": None, "recall": 1 - 2 * rate}
        self.report(
            f"word_error_rate/{cell.path}",
            "rescore" if rescored else "fuse",
            stage_name(cell, "rescore" if rescored else "recognise"),
            inputs=["models/recogniser", f"{encoded}/test.safetensors", *models],
            outputs=[f"results/scores/{cell.path}.errors.tsv"],
            parameters={"speech.fusion": {}},
            measured={
                "wer": rate,
                "wer_ci": [rate - 0.01, rate + 0.01],
                **{"insertions": 0, "deletions": 0, "substitutions": errors},
                **{"words": SENTENCES * 20, "utterances": SENTENCES},
                **{"character_error_rate": rate / 2, "character_error_rate_ci": None},
                "masked_words": dict.fromkeys(MASKED, of_masked),
                "by_language": {},
                **dict.fromkeys(("mixed_error_rate", "mixed_error_rate_ci")),
                "lm_weight": 0.4 if model else None,
                "insertion_bonus": 0.0 if model else None,
                **(tuned if model and rescored else {}),
                **(of_lists if rescored else {"real_time_factor": 0.012, "synthetic_speech": True}),
            },
            cell=cell.as_dict(),
            seed=cell.seed,
        )
        write_word_errors(self.folder / "results" / "scores" / f"{cell.path}.errors.tsv", errors)


def write_forgetting(folder: Path) -> None:
    """A report of two ways to forget beside the models at the ends: what is left of 32 bits, and times perplexity."""
    path = next((folder / "results" / "reports").glob("adapt/**/*.json"))
    report = json.loads(path.read_text(encoding="utf-8")) | {"stage": "compare-unlearning"}
    report["cell"] = Cell("chat", seed=2).as_dict()
    unidetox = {"kind": "inverse_distillation", "unwanted": "start", "alpha": 0.1}
    methods = {"unidetox": unidetox, "steering": {"kind": "steering", "rank": 64}}
    given = {"repetitions": [1, 16], "relearning_steps": 10, "relearned_share": 0.1, "budget": 0.05}
    report["parameters"] = {**given, "methods": methods}
    rows = {}
    ends = [("retrained", 1.0, 0.98), ("start", 32.0, 1.0)]
    for name, bits, ratio in (*ends, ("unidetox", 31.0, 2.0), ("steering", 20.0, 1.01)):
        row = {"perplexity": 90 * ratio, "ratio_to_start": ratio, "ratio_to_start_ci": [ratio, ratio]}
        for kind in ("template_1", "template_16", "ordinary_1", "ordinary_16"):
            row |= {f"exposure_{kind}": bits, f"exposure_{kind}_ci": [bits - 1, bits + 1]}
        row |= {"membership": 0.6, "privacy_leakage": -0.1, "sweep": [{"strength": 5}]}
        rows[name] = row | {"within_budget": ratio < 1.05}
    report["measured"] = {"by_method": rows}
    (folder / "results" / "reports" / "unlearning").mkdir()
    (folder / "results" / "reports" / "unlearning" / "chat-2.json").write_text(json.dumps(report), encoding="utf-8")


def write_examples(folder: Path) -> None:
    """A report of made-up sentences, as Top-K with MiniLM and unigram sampling fill them."""
    reports = folder / "results" / "reports"
    document = json.loads((reports / "fill" / "chat" / "allow_list" / "minilm-top_k-1.json").read_text("utf-8"))
    filled = [
        {"method": "top_k", "filler": "minilm", "lines": ["Ben met Eva."]},
        {"method": "unigram", "filler": None, "lines": ["The met of."]},
    ]
    examples = {"technique": "allow_list", "masked": ["[MASK] met [MASK]."], "filled": filled}
    document |= {
        "stage": "examples",
        "cell": {"dataset": "chat", "filler": "minilm", "seed": 1},
        "measured": {"raw": ["Ann met Bob."], "by_technique": [examples]},
    }
    (reports / "examples" / "chat").mkdir(parents=True)
    (reports / "examples" / "chat" / "minilm.json").write_text(json.dumps(document), encoding="utf-8")


def word_errors(cell: Cell) -> int:
    return WORD_ERRORS.get(str(cell.method), 140) + ((cell.seed or 1) - 1)


def write_word_errors(path: Path, errors: int) -> None:
    """Substitutions spread over the utterances, one more in the first ones where they do not divide."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["utterance_id\tall:units\tall:errors"]
    for number in range(SENTENCES):
        wrong = errors // SENTENCES + (number < errors % SENTENCES)
        lines.append(f"u{number:03d}\t20\t{wrong}")
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
