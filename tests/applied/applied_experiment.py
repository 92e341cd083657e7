"""A small experiment that is finished: a corpus, two maskings, and fills of every kind, with their reports."""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from tiny_masked_models import random_bert, save, word_piece_tokenizer

from tasks.cli import main
from tasks.records.stage_report import recorded_stage

ROOT = Path(__file__).parents[2]
KEPT = "we met the cat on a red mat and then called about it dog ran sat"
NAMES = ("Ottilie", "Vexmorthan", "John Smith", "Chicago", "Zyxwquill")
METHODS = {
    "surrogate": {"kind": "surrogate"},
    "consistent": {"kind": "surrogate", "consistent_within": "document"},
    "top_k": {"kind": "top_k", "k": 3, "copies": 2},
    "log_linear": {"kind": "log_linear"},
    "counted": {"kind": "unigram", "prior": "counted", "counts": {"epsilon": 2.0}},
}
CELLS = {
    "mail/crf/surrogate-1": "data/obfuscated/mail/crf/surrogate-1.txt",
    "mail/words/consistent-1": "data/obfuscated/mail/words/consistent-1.txt",
    "mail/words/tiny-top_k-1": "data/obfuscated/mail/words/tiny-top_k-1.txt",
    "mail/words/tiny-log_linear-1": "data/obfuscated/mail/words/tiny-log_linear-1.txt",
    "mail/words/counted-1": "data/obfuscated/mail/words/counted-1.txt",
    "mail/lists/baseline1-1": "data/private/masked/mail/train/lists/text.txt",
    "mail/crf/baseline1-1": "data/private/masked/mail/train/crf/text.txt",
}
"""Cells with the texts that the run made."""


def sentences(count: int, seed: int = 1) -> list[str]:
    """Made-up lines, all different; one has a marker of its own."""
    chance = random.Random(seed)
    words = KEPT.split()
    return [
        f"We met {chance.choice(NAMES)} [MASK] {' '.join(chance.choices(words, k=4))}, number {line} of {seed}."
        for line in range(count)
    ]


def make_experiment(folder: Path, count: int, cells: Sequence[str] = tuple(CELLS)) -> None:
    """Run the stages of the cells on so many lines, in this process and in ``folder``, the working folder."""
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    crf = {"kind": "entity_tagger", "tagger": {"kind": "crf"}}
    parameters["masking"] = {"words": {"kind": "allow_list", "path": "words.txt"}, "crf": crf}
    parameters["masking"]["lists"] = {"kind": "language_lists", "tell_languages": True}
    parameters["filling"] |= METHODS
    parameters["corpora"]["mail"] = {"kind": "files", "source": "mail.txt", "cleaning": {"train_sentences": count}}
    parameters["compare"] |= {
        "techniques": ["words", "crf"],
        "speech_techniques": None,
        "fills": [{"methods": ["unigram"]}],
    }
    parameters["compare"]["detectors"] = ["words"]
    parameters["release"] |= {"unmasked_direct": 900}
    generic = "".join(
        f"the {one} sat on the {other}\nthe red dog ran\n" for one in KEPT.split() for other in ("cat", "tom")
    )
    files = {
        "params.yaml": yaml.safe_dump(parameters),
        "words.txt": "\n".join(KEPT.split()),
        "mail.txt": "\n".join(sentences(2 * count + 20)) + "\n",
        "data/generic/train.txt": generic,
        "data/generic/valid.txt": generic,
        "data/word_counts.tsv": "".join(f"{word}\t{9 + i}\n" for i, word in enumerate(("tom", "paris", *KEPT.split()))),
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    tokenizer = word_piece_tokenizer()
    save(random_bert(tokenizer), tokenizer, folder / "filler")
    _run("corpora", "--params", "params.yaml", "--name", "corpora.mail", "--private", "--output",
         "data/private/corpora/mail", "--report", "results/reports/corpora/mail.json")  # fmt: skip
    for technique in sorted({cell.split("/")[1] for cell in cells}):
        masked = f"data/private/masked/mail/train/{technique}"
        named = ["--params", "params.yaml", "--technique", technique, "--cell", "dataset=mail"]
        outputs = ["--output", f"{masked}/text.txt", "--allowed-words", f"{masked}/allowed_words.txt"]
        _run("mask", *named, "--input", "data/private/corpora/mail/train.txt", *outputs, "--sidecar",
             f"{masked}/sidecar.jsonl", "--report", f"results/reports/mask/mail/{technique}.json")  # fmt: skip
    for cell in cells:
        _, technique, made = cell.split("/")
        filler, method = made.removesuffix("-1").split("-") if "tiny" in made else (None, made.removesuffix("-1"))
        if method == "baseline1":
            continue
        masked = f"data/private/masked/mail/train/{technique}"
        label = f"dataset=mail,technique={technique}" + (f",filler={filler}" if filler else "")
        given = [
            "--params",
            "params.yaml",
            "--method",
            method,
            "--cell",
            label,
            *(["--filler", "filler"] if filler else []),
        ]
        _run("fill", *given, "--input", f"{masked}/text.txt", "--output", CELLS[cell], "--generic", "data/generic",
             "--allowed-words", f"{masked}/allowed_words.txt", "--sidecar", f"{masked}/sidecar.jsonl",
             "--documents", "data/private/corpora/mail/train.documents", "--word-counts", "data/word_counts.tsv",
             "--report", f"results/reports/fill/{cell}.json")  # fmt: skip


def attacked(cell: str) -> None:
    """What the attacks on a cell leave behind, without these."""
    measured = {"verbatim_lines": 0.0, "reidentified_1": 0.02, "reidentified_1_ci": [0.01, 0.03]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["palimpsest", "audit"])
        with recorded_stage("audit", f"results/reports/audit/{cell}.json", inputs=[CELLS[cell]]) as recorded:
            recorded.measure(attackers={"reidentified_1": "a model that guesses"}, **measured)


def _run(*command: str) -> None:
    """In process; the report takes the command from where a process has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["palimpsest", *command])
        assert main(list(command)) == 0
