"""A small experiment: made-up corpora from templates, and a tiny untrained BERT that fills.

It shows that the machinery works from raw text to tracking store, and nothing about quality.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from project_copy import copy_project

from tasks.parameters.cells_file import write_cells
from tasks.parameters.parameter_file import read_parameters

CANARIES = ("Zyxwquill", "Vexmorthane", "quorblatt77@hiddenmail.example")
"""Strings that stand in the private corpus alone. No technique of this run keeps them."""

PARAMETERS = yaml.safe_load("""
compare:
  datasets: [mail]
  techniques: [allow_list]
  baselines: []
  fills:
    - {filler: tiny, methods: [top_k]}
    - {methods: [unigram]}
  seeds: [1]
  speech_datasets: [mail]
  recognisers: []
  rescored_datasets: []
  taggers: [crf]
  detectors: [crf]
  gold_sets: [mail]
generic:
  kind: files
  source: data/raw/generic.txt
  cleaning: {minimum_words: 3, valid_sentences: 20, test_sentences: 20}
word_counts: {published_share: 0.0}
corpora:
  mail:
    kind: files
    source: data/raw/mail.txt
    cleaning: {minimum_words: 3, valid_sentences: 20, test_sentences: 30}
masking:
  allow_list: {kind: allow_list}
  crf: {kind: entity_tagger, tagger: {kind: crf, model: models/taggers/crf}}
labelled_text: {sentences: 150}
taggers:
  crf: {kind: crf, embeddings: null, iterations: 5}
masking_evaluation:
  gold_sets:
    mail: {source: data/raw/labelled_mail.jsonl}
  bootstrap_samples: 100
  confidence: 0.95
  seed: 1
fillers:
  tiny: {kind: masked_lm, model: ./data/raw/tiny_untrained_bert}
tuned_fillers: {}
filling:
  top_k: {kind: top_k, k: 5}
  unigram: {kind: unigram}
language_model:
  kind: transformer
  transformer: {}
  vocabulary: {size: 400, minimum_count: 1}
  architecture: {layers: 1, heads: 2, width: 16, maximum_tokens: 32}
  pretraining: {epochs: 1.0, batch_tokens: 256, learning_rate: 0.01, seed: 1}
  adaptation: {epochs: 1.0, batch_tokens: 256, learning_rate: 0.01}
evaluation: {bootstrap_samples: 100, confidence: 0.95, seed: 1}
fluency: {lines: 50, judged_lines: 20}
audit: {places: 50, canaries: 2, references: 255, coins: 100, bootstrap_samples: 100, sampled: 100}
speech:
  text: {kind: files, source: data/raw/generic.txt}
  recogniser: {kind: trained}
  corpora:
    mail:
      dev:
        kind: synthetic
        source: data/private/corpora/mail/valid.txt
        synthesis: {sentences: 4, voice_set: dev, seed: 1}
      test:
        kind: synthetic
        source: data/private/corpora/mail/test.txt
        synthesis: {sentences: 4, voice_set: test, seed: 1}
  search: {beam_width: 2}
  fusion: {lm_weights: [0.0, 0.3], insertion_bonuses: [0.0], tuning_rounds: 1}
  nbest: {}
  word_errors: {bootstrap_samples: 100, confidence: 0.95, seed: 1}
resources: {threads: 1, parallel_stages: 2}
tracking: {uri: "sqlite:///mlflow.db", experiment: palimpsest, live: true, log_every_steps: 1}
""")

TUNED = {"base": "tiny", "kind": "masked_lm", "text": "filled", "method": {"kind": "top_k", "k": 5}, "steps": 2}
"""A tuned filler, for experiments that have one."""
SUBJECTS = "the manager, my brother, the new teacher, our neighbour, her friend, the old doctor, a customer".split(", ")
VERBS = ["called", "visited", "paid", "thanked", "helped", "found", "asked", "wrote to", "waited for", "talked about"]
OBJECTS = ["the office", "a large house", "the same train", "his sister", "the small shop", "our garden", "a good book"]
TIMES = ["yesterday", "last week", "in the morning", "before lunch", "after the meeting", "two days ago", "again"]
NAMES = ["Marigold", "Thaddeus", "Springfield", "Oxbridge", "Fennimore", "Lockwood", "Acme"]


def sentences(count: int, names: list[str], seed: int) -> list[str]:
    generator = random.Random(seed)
    lines = []
    for _ in range(count):
        words = [generator.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, TIMES)]
        lines.append(f"{' '.join(words).capitalize()} with {generator.choice(names)}.")
    return lines


def make_tiny_filler(folder: Path) -> None:
    """A BERT of 2 layers with untrained weights and a word-level WordPiece vocabulary."""
    import torch

    from tasks.torch_setup import stand_in_for_torchaudio_extension

    stand_in_for_torchaudio_extension()
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    texts = [text for part in (SUBJECTS, VERBS, OBJECTS, TIMES, NAMES) for text in part]
    words = sorted({word.lower() for text in texts for word in text.split()})
    folder.mkdir(parents=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "with"]
    vocabulary = list(dict.fromkeys([*special, *words, "harbour", "violet", "kettle", "meadow"]))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    torch.manual_seed(0)
    configuration = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertForMaskedLM(configuration).save_pretrained(folder)


def environment() -> dict[str, str]:
    """As after a fresh log-in: our commands on PATH, no tracking server, no git user."""
    # A process that has imported PyTorch or run one of our commands names caches of its own in its environment.
    own = ("MLFLOW_", "GIT_", "DVC_", "TORCHINDUCTOR_", "MPLCONFIGDIR")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    # An empty home: no git user, no settings of Prefect or DVC.
    variables["HOME"] = variables["XDG_CONFIG_HOME"] = tempfile.gettempdir() + "/palimpsest-empty-home"
    Path(variables["HOME"]).mkdir(exist_ok=True)
    return variables


def run(folder: Path, *command: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    assert result.returncode == expect, result.stdout + result.stderr
    return result


def make_checkout(folder: Path) -> Path:
    """A checkout of the project's files with corpora, filler and parameters of our own."""
    copy_project(folder, "tests/", "dvc.lock")
    raw = folder / "data" / "raw"
    raw.mkdir(parents=True)
    private = [f"Yesterday {name} called the manager about a small house." for name in CANARIES * 6]
    private = [f"{line} {number}" for number, line in enumerate(private)]
    (raw / "generic.txt").write_text("\n".join(sentences(400, NAMES, seed=1)) + "\n", encoding="utf-8")
    (raw / "mail.txt").write_text("\n".join(sentences(300, NAMES, seed=2) + private) + "\n", encoding="utf-8")
    labelled = [
        {"text": line, "spans": [{"start": line.index(name), "end": line.index(name) + len(name), "label": "PERSON"}]}
        for line, name in zip(private, CANARIES * 6, strict=True)
    ]
    (raw / "labelled_mail.jsonl").write_text("\n".join(map(json.dumps, labelled)) + "\n", encoding="utf-8")
    make_tiny_filler(raw / "tiny_untrained_bert")
    return with_parameters(folder, PARAMETERS)


def with_parameters(folder: Path, parameters: dict) -> Path:
    """Write ``params.yaml``, and ``cells.yaml`` as it asks."""
    (folder / "params.yaml").write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")
    write_cells(read_parameters(folder / "params.yaml"), folder)
    return folder


def make_finished(folder: Path) -> None:
    """A checkout whose experiment has run."""
    run(make_checkout(folder), "palimpsest", "run")


def copied(experiment: Path, folder: Path) -> Path:
    """A copy of a finished experiment, to be changed; without its tracking store, which names its folder."""
    subprocess.run(["cp", "-a", str(experiment), str(folder)], check=True)
    (folder / "mlflow.db").unlink()
    return folder
