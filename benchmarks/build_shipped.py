"""Make the taggers that ship with palimpsest: ``crf_model`` and ``word_classifier_model`` in ``tasks/masking/taggers``.

Run by developers, not by users. On the same machine, the same versions of the sources give the same conditional random
field, byte by byte:

    python -m benchmarks.build_shipped crf --gold FOLDER
    python -m benchmarks.build_shipped word_classifier --gold FOLDER --teacher FOLDER --text FILE...

Both learn from sentences that palimpsest generates from its own templates, and from public labelled text. ``--gold`` is
its folder: ``social_media_train.jsonl`` and ``social_media_dev.jsonl`` (WNUT 2017), ``web_english_dev.jsonl``
(Universal NER, English Web Treebank) and ``synthetic_pii_dev.jsonl`` (presidio-research).
No test part of any corpus is used. The shipped models have learned from all of these files, so their scores on them
mean nothing. So the measured model is another one, made in the same way without the held-out lines:

    python -m benchmarks.build_shipped crf --gold FOLDER --held-out held_out --output models/taggers/measured

holds out, and writes to the folder ``held_out``, one half of the web and of the synthetic corpus, and all of the dev
part of WNUT, whose sources and years differ from those of its training part. The hash of its text decides the half of a
line, so equal lines stay together.

The word classifier has two more sources: sentences from templates learned from the gold's training lines, and soft
labels for 115,000 unlabelled lines (``data/README.md`` names them). Three classifiers on a larger encoder give the soft
labels (``--teacher``); they have never seen the held-out lines. Without a GPU this takes about twelve hours on one core
(estimated); the shipped model was trained on an NVIDIA H100 in five minutes.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.labelled_text.generate_labelled import SHIPPED
from tasks.labelled_text.generated_corpus import TemplateFile, write_generated
from tasks.labelled_text.labelled_lines import LabelledLine, read_labelled, write_labelled
from tasks.labelled_text.learning import learn_templates
from tasks.labelled_text.settings import LabelledTextSettings
from tasks.labelled_text.slots import SLOT_LABELS
from tasks.labelled_text.template import read_templates
from tasks.masking.settings import WordClassifierTagger
from tasks.masking.taggers.word_classifier import WordClassifier
from tasks.tagger_training.crf_training import train_crf
from tasks.tagger_training.settings import BY_FORM, CrfTraining, WordClassifierTraining
from tasks.tagger_training.train_tagger import class_of
from tasks.tagger_training.word_classifier_training import Example, SoftExample, train_word_classifier

LEARNED, HALVED, HELD_OUT = ("social_media_train",), ("web_english_dev", "synthetic_pii_dev"), ("social_media_dev",)
"""Files that are never held out, of which one half is held out, and that are held out as a whole."""
SHARE_WITHOUT_SLOTS = 0.6
"""Share of the generated sentences without slots; only their training part is used."""
NOT_ANNOTATED = {
    "social_media_train": {*BY_FORM, "GROUP"},
    "social_media_dev": {*BY_FORM, "GROUP"},
    "web_english_dev": {*BY_FORM, "GROUP", "WORK", "MISCELLANEOUS"},
}
"""Classes that a file does not annotate."""
LONGEST_TEXT = 500
"""Longest unlabelled line, in characters."""
PASSES, GENERATED, FROM_GOLD, WITHOUT_LABELS = 8, 6_000, 4_000, 30_000
"""Passes of the word classifier, and the lines in each pass besides the gold."""
TEACHERS = ((1, 4e-5, 0.05, 6, 8_000, False), (2, 4e-5, 0.05, 6, 8_000, True), (3, 6e-5, 0.1, 8, 6_000, True))
"""Teachers with different errors: seed, learning rate, share of hidden words, passes, generated sentences in each, and
whether words outside may be of classes that their corpus does not annotate."""


def is_held_out(name: str, line: LabelledLine) -> bool:
    """Whether a line of a file is for measurement, not for training, if lines are held out."""
    if name in HALVED:
        return hashlib.sha256(line.text.encode("utf-8")).digest()[-1] % 2 == 1
    return name in HELD_OUT


def gold_lines(gold: Path, *, hold_out: bool) -> Iterator[tuple[str, LabelledLine]]:
    """The public training lines, with the names of their files."""
    for name in (*LEARNED, *HALVED, *HELD_OUT):
        for line in read_labelled(gold / f"{name}.jsonl"):
            if not (hold_out and is_held_out(name, line)):
                yield name, line


def write_held_out(gold: Path, folder: Path) -> None:
    """Write the held-out lines, one file for each corpus."""
    for name in (*HALVED, *HELD_OUT):
        lines = (line for line in read_labelled(gold / f"{name}.jsonl") if is_held_out(name, line))
        write_labelled(folder / f"{name}.jsonl", lines)


def generated_lines(settings: LabelledTextSettings, gold: Path | None = None) -> list[LabelledLine]:
    """The training part of sentences from the shipped templates, or from those of labelled files in a folder."""
    if gold:
        paths = sorted(gold.glob("*.jsonl"))
        files = [TemplateFile(learn_templates(path, {}).templates, learned=True) for path in paths]
    else:
        files = [TemplateFile(read_templates(path, SLOT_LABELS)) for path in sorted(SHIPPED.glob("*.txt"))]
    with tempfile.TemporaryDirectory() as folder:
        write_generated(Path(folder), files, settings)
        return list(read_labelled(Path(folder) / "train.jsonl"))


def build_crf(gold: Path, hold_out: bool, output: str | Path) -> None:
    """Train the conditional random field."""
    lines = generated_lines(LabelledTextSettings(sentences=10_000, negative_share=SHARE_WITHOUT_SLOTS))
    lines += [line for _, line in gold_lines(gold, hold_out=hold_out)]
    train_crf(lines, class_of, CrfTraining(kind="crf"), output)


def build_word_classifier(gold: Path, hold_out: bool, output: Path, teacher: str, texts: Sequence[str]) -> None:
    """Train the teachers, label the texts with them, and train the word classifier."""
    random = np.random.default_rng(1)
    generated = generated_lines(LabelledTextSettings(sentences=40_000, negative_share=SHARE_WITHOUT_SLOTS))
    entity_types = sorted({str(class_of(span.label)) for line in generated for span in line.spans})
    texts = [text[:LONGEST_TEXT] for text in texts]

    def some(lines: Sequence[Any], count: int) -> list[Any]:
        return [lines[index] for index in random.choice(len(lines), min(count, len(lines)), replace=False)]

    examples: list[Example | SoftExample]
    with tempfile.TemporaryDirectory() as folder:
        said = []
        for seed, rate, hidden, passes, count, open_classes in TEACHERS:
            settings = WordClassifierTraining(
                kind="word_classifier", base=teacher, rank=None, epochs=1, learning_rate=rate, new_learning_rate=1e-3,
                hidden_share=hidden, seed=seed,
            )  # fmt: skip
            examples = []
            for _ in range(passes):
                examples += map(Example, some(generated, count))
                for name, line in gold_lines(gold, hold_out=True):
                    left_open = NOT_ANNOTATED.get(name, set()) if open_classes else set()
                    examples.append(Example(line, frozenset(left_open)))
            path = f"{folder}/teacher{seed}"
            train_word_classifier(examples, class_of, settings, path, entity_types)
            asked = WordClassifier(WordClassifierTagger(kind="word_classifier", model=path), threads=1)
            said.append(asked.probabilities(texts))
        soft = [SoftExample(text, np.mean(answers, axis=0)) for text, *answers in zip(texts, *said, strict=True)]
        learned = Path(folder) / "learned"
        lines = list(gold_lines(gold, hold_out=hold_out))
        for name in {name for name, _ in lines}:
            write_labelled(learned / f"{name}.jsonl", (line for of, line in lines if of == name))
        options = LabelledTextSettings(sentences=24_000, valid_share=0, test_share=0.01, joined_share=0.05)
        from_gold = generated_lines(options, learned)
    examples = []
    for _ in range(PASSES):
        examples += map(Example, some(generated, GENERATED))
        examples += (Example(line, unsure_classes=frozenset({"CONTACT"})) for line in some(from_gold, FROM_GOLD))
        examples += (Example(line) for _, line in lines)
        examples += some(soft, WITHOUT_LABELS)
    student = WordClassifierTraining(kind="word_classifier", epochs=1, batch_pieces=3072)
    train_word_classifier(examples, class_of, student, output, entity_types)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("crf", "word_classifier"))
    parser.add_argument("--gold", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="in place of the one that ships")
    parser.add_argument("--held-out", type=Path, metavar="FOLDER", help="learn from less, and write the rest")
    parser.add_argument("--teacher", metavar="FOLDER", help="encoder of the word classifier's teachers")
    parser.add_argument("--text", type=Path, nargs="+", metavar="FILE", help="lines for the teachers to label")
    arguments = parser.parse_args()
    output = arguments.output or Path(f"tasks/masking/taggers/{arguments.kind}_model")
    if arguments.held_out:
        write_held_out(arguments.gold, arguments.held_out)
    hold_out = arguments.held_out is not None
    if arguments.kind == "crf":
        build_crf(arguments.gold, hold_out, output)
    else:
        texts = [line for path in arguments.text for line in path.read_text(encoding="utf-8").splitlines()]
        build_word_classifier(arguments.gold, hold_out, output, arguments.teacher, texts)


if __name__ == "__main__":
    main()
