"""Cells of an experiment, made by the commands of its stages in this process and the working folder.

A cell is named ``CORPUS/TECHNIQUE/METHOD-1`` or ``CORPUS/TECHNIQUE/FILLER-METHOD-1``.
"""

import sys

import pytest

from flows import release_command
from tasks.cli import command_parser, main
from tasks.records.stage_report import recorded_stage


def run(*command: str) -> None:
    """One command; its report takes the words of it from where a process has them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["palimpsest", *command])
        assert main(list(command)) == 0


def mask(corpus: str, technique: str) -> None:
    """The masked training text of a corpus."""
    masked = f"data/private/masked/{corpus}/train/{technique}"
    run("mask", "--params", "params.yaml", "--technique", technique, "--cell", f"dataset={corpus}",
        "--input", f"data/private/corpora/{corpus}/train.txt", "--output", f"{masked}/text.txt",
        "--allowed-words", f"{masked}/allowed_words.txt", "--sidecar", f"{masked}/sidecar.jsonl",
        "--report", f"results/reports/mask/{corpus}/{technique}.json")  # fmt: skip


def fill(cell: str, *options: str) -> None:
    """The filled text of a cell whose technique has masked it."""
    corpus, technique, made = cell.split("/")
    *filler, method = made.removesuffix("-1").split("-")
    masked = f"data/private/masked/{corpus}/train/{technique}"
    label = ",".join([f"dataset={corpus},technique={technique}", *(f"filler={name}" for name in filler)])
    run("fill", "--params", "params.yaml", "--method", method, "--cell", label, "--input", f"{masked}/text.txt",
        "--allowed-words", f"{masked}/allowed_words.txt", "--sidecar", f"{masked}/sidecar.jsonl",
        "--word-counts", "data/word_counts.tsv", "--generic", "data/generic", "--output", f"data/obfuscated/{cell}.txt",
        "--report", f"results/reports/fill/{cell}.json", *options)  # fmt: skip


def attacked(cell: str, **figures: object) -> None:
    """What attacks on a cell leave behind, without an attack."""
    text = f"data/obfuscated/{cell}.txt"
    measured = {"verbatim_lines": 0.0, "reidentified_1": 0.0213, "reidentified_1_ci": [0.01, 0.03]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["palimpsest", "audit", "--text", text])
        with recorded_stage("audit", f"results/reports/audit/{cell}.json", inputs=[text]) as recorded:
            recorded.measure(**{"attackers": {"reidentified_1": "a model that guesses"}} | measured | figures)


def release(cell: str, name: str, *options: str) -> int:
    """``palimpsest release``; a refusal is raised."""
    given = [cell, "--name", name, *options]
    return release_command.run(command_parser("release", release_command).parse_args(given))
