"""Options of a step for one cell: ``palimpsest adapt --cell chat-oracle-1``.

The row of the cell in ``cells.yaml`` fills the step's paths, which are those of ``dvc.yaml``. The settings come from
``params.yaml``. Options after ``--cell`` replace those of the cell.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from tasks.errors import ParameterError
from tasks.spelling import nearest

CELLS_FILE = "cells.yaml"
OPTIONS = {
    "corpora": "--name corpora.{dataset} --private --output {corpus} --report results/reports/corpora/{dataset}.json",
    "mask": """--input {text} --word-counts data/word_counts.tsv --output {masked}/{part}/{technique}/text.txt
        --allowed-words {masked}/{part}/{technique}/allowed_words.txt
        --sidecar {masked}/{part}/{technique}/sidecar.jsonl
        --report results/reports/{report}/{dataset}/{technique}.json""",
    "unmasked": """--text {corpus}/train.txt --masked {masked}/train --reader {masked}/{reader}
        --report results/reports/unmasked/{dataset}.json""",
    "tune_filler": """--name {filler} --base {base} --input {masked}/train/{technique}/text.txt
        --allowed-words {masked}/train/{technique}/allowed_words.txt --word-counts data/word_counts.tsv
        --generic data/generic --output models/tuned_fillers/{path}
        --report results/reports/tuned_fillers/{path}.json""",
    "fill": """[--filler {folder}] --input {masked}/train/{technique}/text.txt
        --allowed-words {masked}/train/{technique}/allowed_words.txt --word-counts data/word_counts.tsv
        --generic data/generic --sidecar {masked}/train/{technique}/sidecar.jsonl --documents {corpus}/train.documents
        --output data/obfuscated/{path}.txt --report results/reports/fill/{path}.json""",
    "distil": """--private {corpus}/train.txt --sidecar {masked}/train/{technique}/sidecar.jsonl
        --output data/obfuscated/{path}.txt --report results/reports/fill/{path}.json""",
    "fluency": """--raw {corpus}/train.txt --masked {masked}/train --fills data/obfuscated/{dataset}
        --report results/reports/fluency/{dataset}.json""",
    "conclusion": """--input {corpus}/train.txt --labels {corpus}/train.labels
        --report results/reports/conclusion/{dataset}.json""",
    "examples": """--filler {folder} --masked {masked}/train --word-counts data/word_counts.tsv --generic data/generic
        --report results/reports/examples/{path}.json""",
    "adapt": """--model models/pretrained --input {text} --output {model} --valid {corpus}/valid.txt
        --report results/reports/adapt/{path}.json""",
    "perplexity": """--model {model} --input {corpus}/test.txt --sidecar {masked}/test
        --word-counts data/word_counts.tsv --scores results/scores/{path}.tsv
        --report results/reports/perplexity/{path}.json""",
    "speech_corpus": """--name speech.corpora.{dataset}.{part} --output data/private/speech/{dataset}/{part}
        --report results/reports/speech/{dataset}/{part}.json""",
    "encode-speech": """--recogniser {recogniser} --manifest data/private/speech/{dataset}/{part}/manifest.jsonl
        --output data/private/encoded_speech/{dataset}/{part}.safetensors
        --report results/reports/encode_speech/{dataset}/{part}.json""",
    "check_nbest": """--name speech.nbest.{dataset}.{part} --output data/private/nbest/{dataset}/{part}.jsonl.gz
        --report results/reports/nbest/{dataset}/{part}.json""",
    "reference-text": "--references {said} --output data/private/speech_references/{dataset}.txt",
    "tune-fusion": """--recogniser {recogniser} --model {model}
        --dev data/private/encoded_speech/{dataset}/dev.safetensors
        --dev-manifest data/private/speech/{dataset}/dev/manifest.jsonl
        --output data/private/fusion_weights/{dataset}/{weights}.json
        --report results/reports/tune_fusion/{dataset}/{weights}.json""",
    "fuse": """--recogniser {recogniser} --test data/private/encoded_speech/{dataset}/test.safetensors
        --test-manifest data/private/speech/{dataset}/test/manifest.jsonl
        [--model {model} --training-text {text} --weights data/private/fusion_weights/{dataset}/{weights}.json]
        --sidecar {masked}/speech --output data/private/recognised/{path}.jsonl
        --counts results/scores/{path}.errors.tsv --report results/reports/word_error_rate/{path}.json""",
    "rescore": """--dev data/private/nbest/{dataset}/dev.jsonl.gz --nbest data/private/nbest/{dataset}/test.jsonl.gz
        [--model {model} --training-text {text}] --sidecar {masked}/speech
        --output data/private/recognised/{path}.jsonl --counts results/scores/{path}.errors.tsv
        --report results/reports/word_error_rate/{path}.json""",
    "audit": """[--filler {folder}] --members {corpus} --text {text} --masked {masked}/train
        --word-counts data/word_counts.tsv --generic data/generic --base models/pretrained
        --report results/reports/audit/{path}.json""",
    "compare-unlearning": """--corpus {corpus} --masked {masked}/train/{masking} --base models/pretrained
        --word-counts data/word_counts.tsv --report results/reports/unlearning/{path}.json""",
}
"""Paths by command; those in brackets only if the row has their columns. A column with a command's name holds further
options of that command."""
_STANZAS = {
    "audit": ("audit", "audit_tuned", "audit_control", "audit_oracle", "audit_private"),
    "check_nbest": ("nbest",),
    "compare-unlearning": ("unlearning",),
    "corpora": ("corpus",),
    "encode-speech": ("speech",),
    "fill": ("fill", "fill_control"),
    "fuse": ("recognise", "recognise_alone"),
    "perplexity": ("evaluate",),
    "reference-text": ("references",),
    "rescore": ("rescore", "rescore_alone"),
    "speech_corpus": ("speech",),
    "tune-fusion": ("tune_fusion",),
}
"""Stanzas of ``dvc.yaml`` by command, if they are not one with its name."""


def with_options_of_cell(command: str, typed: Sequence[str], labels: Sequence[str], words: Sequence[str]) -> list[str]:
    """The words of a command line, with ``--cell KEY`` replaced by the cell's options.

    ``typed``: dimensions with options of their own; ``labels``: those in ``--cell KEY=VALUE``, which stays as it is.
    """
    found = list(words)
    for place, word in enumerate(words):
        option, sign, key = word.partition("=")
        if option == "--cell" and command in OPTIONS:
            key = key if sign else "".join(words[place + 1 : place + 2])
            if key and "=" not in key:
                found[place : place + (1 if sign else 2)] = _options(command, typed, labels, key)
                break
    return found


def _options(command: str, typed: Sequence[str], labels: Sequence[str], key: str) -> list[str]:
    row = _row(command, key)
    known = ",".join(f"{name}={row[name]}" for name in labels if name in row)
    words = ["--params", "params.yaml", *(["--cell", known] if known else [])]
    for name in typed:
        words += [f"--{name}", str(row[name])] if name in row else []
    for bracket, text in re.findall(r"(\[?)([^][]+)", OPTIONS[command]):
        if not bracket or all(name in row for name in re.findall(r"{(\w+)}", text)):
            words += [word.format_map(row) for word in text.split()]
    for name, value in row.get(command, {}).items():
        words += [f"--{name}", *(value if isinstance(value, list) else [value])]
    return words


def _row(command: str, key: str) -> Mapping[str, Any]:
    """The row of a cell, with folders that follow from it; ``ParameterError`` if no stanza of the command has it."""
    try:
        cells = _cells(Path(CELLS_FILE).read_text(encoding="utf-8"))
        rows = {name: row for stanza in _STANZAS.get(command, (command,)) for name, row in cells[stanza].items()}
    except FileNotFoundError:
        raise ParameterError(
            f"--cell {key!r}: there is no {CELLS_FILE} here; run in the project's folder, or give paths as options and "
            "labels as KEY=VALUE"
        ) from None
    except (yaml.YAMLError, KeyError, TypeError):
        raise ParameterError(
            f"{CELLS_FILE} is of another version or damaged; 'palimpsest cells' writes it again"
        ) from None
    if key not in rows:
        raise ParameterError(
            f"--cell {key!r} is no cell of this step in {CELLS_FILE}{nearest(key, rows)}; 'palimpsest plan' lists cells"
        )
    dataset = rows[key]["dataset"]
    folders = {"corpus": f"data/private/corpora/{dataset}", "masked": f"data/private/masked/{dataset}"}
    return {**rows[key], **folders, "recogniser": cells["recogniser"]}


@lru_cache(maxsize=1)
def _cells(text: str) -> dict[str, Any]:
    cells: dict[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))["cells"]
    return cells
