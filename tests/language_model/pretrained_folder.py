"""A folder with small texts and a small pretrained model, for tests that run whole commands on it."""

import random
from collections.abc import Sequence
from pathlib import Path

from stage_commands import settings

from tasks.cli import main

SMALL = [
    *settings(
        "architecture.layers=1", "architecture.heads=2", "architecture.width=8", "architecture.maximum_tokens=16"
    ),
    "--threads",
    "1",
]
_WORDS = ("the", "cat", "dog", "sat", "on", "mat", "saw", "a")


def fill_with_pretrained(folder: Path, sentences: int, last: Sequence[str] = ()) -> Path:
    """Write text.txt with so many random sentences and ``last``, valid.txt, vocabulary.txt, and a model, pretrained."""
    draw = random.Random(1)
    for name, count in (("text", sentences), ("valid", 50)):
        lines = [" ".join(draw.choices(_WORDS, k=draw.randint(2, 9))) for _ in range(count)]
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in [*lines, *last]), encoding="utf-8")
    assert main(["vocabulary", "--input", str(folder / "text.txt"), "--output", str(folder / "vocabulary.txt")]) == 0
    options = ["--input", str(folder / "valid.txt"), "--vocabulary", str(folder / "vocabulary.txt"), *SMALL]
    work = str(folder / "work")
    assert (
        main(["pretrain", *options, "--output", str(folder / "pretrained"), "--set", f"resources.work_folder={work}"])
        == 0
    )
    return folder
