"""Make the conditional random field that ships with palimpsest, ``tasks/masking/taggers/crf_model``.

Run by developers, not by users. On the same machine, the same versions of the sources give the same bytes:

    python -m benchmarks.build_shipped --gold FOLDER

It learns from sentences that palimpsest generates from its own templates, and from public labelled text. ``--gold`` is
its folder: ``social_media_train.jsonl`` and ``social_media_dev.jsonl`` (WNUT 2017), ``web_english_dev.jsonl``
(Universal NER, English Web Treebank) and ``synthetic_pii_dev.jsonl`` (presidio-research).
No test part of any corpus is used. The shipped model has learned from all of these files, so its scores on them mean
nothing. So the measured model is another one, made in the same way without the held-out lines:

    python -m benchmarks.build_shipped --gold FOLDER --held-out held_out --output models/taggers/measured

holds out, and writes to the folder ``held_out``, one half of the web and of the synthetic corpus, and all of the dev
part of WNUT, whose sources and years differ from those of its training part. The hash of its text decides the half of a
line, so equal lines stay together.

``word_classifier_model`` was trained once on a GPU, by ``tasks/tagger_training/build_shipped.py`` of commit 33a52eb6.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tasks.labelled_text.generate_labelled import SHIPPED
from tasks.labelled_text.generated_corpus import TemplateFile, write_generated
from tasks.labelled_text.labelled_lines import LabelledLine, read_labelled, write_labelled
from tasks.labelled_text.settings import LabelledTextSettings
from tasks.labelled_text.slots import SLOT_LABELS
from tasks.labelled_text.template import read_templates
from tasks.tagger_training.crf_training import train_crf
from tasks.tagger_training.settings import CrfTraining
from tasks.tagger_training.train_tagger import class_of

LEARNED, HALVED, HELD_OUT = ("social_media_train",), ("web_english_dev", "synthetic_pii_dev"), ("social_media_dev",)
"""Files that are never held out, of which one half is held out, and that are held out as a whole."""
GENERATED = LabelledTextSettings(sentences=10_000, negative_share=0.6)
"""Generated sentences, and the share of those without slots; only their training part is used."""


def gold_lines(gold: Path, *, hold_out: bool) -> Iterator[tuple[str, LabelledLine]]:
    """The public training lines, with the names of their files."""
    for name in (*LEARNED, *HALVED, *HELD_OUT):
        for line in read_labelled(gold / f"{name}.jsonl"):
            if not (hold_out and is_held_out(name, line)):
                yield name, line


def is_held_out(name: str, line: LabelledLine) -> bool:
    """Whether a line of a file is for measurement, not for training, if lines are held out."""
    if name in HALVED:
        return hashlib.sha256(line.text.encode("utf-8")).digest()[-1] % 2 == 1
    return name in HELD_OUT


def write_held_out(gold: Path, folder: Path) -> None:
    """Write the held-out lines, one file for each corpus."""
    for name in (*HALVED, *HELD_OUT):
        lines = (line for line in read_labelled(gold / f"{name}.jsonl") if is_held_out(name, line))
        write_labelled(folder / f"{name}.jsonl", lines)


def build_crf(gold: Path, hold_out: bool, output: Path) -> None:
    """Train the conditional random field."""
    files = [TemplateFile(read_templates(path, SLOT_LABELS)) for path in sorted(SHIPPED.glob("*.txt"))]
    with tempfile.TemporaryDirectory() as folder:
        write_generated(Path(folder), files, GENERATED)
        lines = list(read_labelled(Path(folder) / "train.jsonl"))
    lines += [line for _, line in gold_lines(gold, hold_out=hold_out)]
    train_crf(lines, class_of, CrfTraining(kind="crf"), output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--output", type=Path, metavar="FOLDER", default="tasks/masking/taggers/crf_model")
    parser.add_argument("--held-out", type=Path, metavar="FOLDER", help="learn from less, and write the rest")
    arguments = parser.parse_args()
    if arguments.held_out:
        write_held_out(arguments.gold, arguments.held_out)
    build_crf(arguments.gold, arguments.held_out is not None, arguments.output)


if __name__ == "__main__":
    main()
