"""Write text by a language model, to replace a private text (corpus inverse distillation).

The model (--model) draws every word by its probability. With a second model (--unwanted), a word is
more probable the more --model prefers it to --unwanted. The setting strength is the weight of this
contrast.

The output has as many lines as the private text (--private). Lines that quote it are dropped, and
others are drawn instead. A line quotes it in two cases:

- It is a whole private line.
- It repeats some words of one private line, with a private word (--sidecar) among them. The setting
  scanned_words is their number.

Text of a model that never saw private words is as private as that model. Text of a model that saw
them quotes words that it has learned by heart. It quotes more if probabilities of such a model
decide which words count (--mask-model, alpha). A dropped line reveals a little too, by its absence.

examples:
  palimpsest adapt --model models/pretrained --input masked.txt --markers ignore --output models/of_masked
  palimpsest distil --method distilled --model models/of_masked --private mail.txt --sidecar mail.jsonl \\
    --output distilled.txt
  palimpsest distil --method distilled --model models/of_masked --unwanted models/of_raw --set strength=0.5 \\
    --private mail.txt --sidecar mail.jsonl --output distilled.txt
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_corpus, write_lines
from tasks.errors import ModelError
from tasks.filling.methods.distilled import Distilled
from tasks.language_model.evaluation.reference_text import is_touched, placed_words, reference_text_of
from tasks.language_model.language_models import Words
from tasks.language_model.opening import open_learner
from tasks.options import READ, READ_MODEL, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

SUMMARY = "write text by a language model, or a contrast of two, to replace a private text"
_MOST_DRAWN = 5
"""Limit of drawn lines, as a multiple of the wanted lines; beyond it the model has memorised the private text."""


class DistilFiles(StageFiles):
    """Models that write the text, and the private text that it must not quote."""

    model: Annotated[str, READ_MODEL]
    """model that writes: a Transformer of palimpsest or a causal model of Hugging Face"""
    unwanted: Annotated[str | None, READ_MODEL] = None
    """second model; words that --model prefers to it become more probable"""
    mask_model: Annotated[str | None, READ_MODEL] = None
    """with alpha above 0: the model whose probabilities decide which words count (default: --model)"""
    private: Annotated[str, READ]
    """private text, one sentence a line; as many lines are written, and none quotes it"""
    sidecar: Annotated[str | None, READ] = None
    """private words of --private, as 'palimpsest mask --sidecar' writes them"""
    output: Annotated[str, WRITE]
    """file for the text, one sentence a line"""


def distil(settings: Distilled, files: DistilFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Write the text.

    Raises ``ModelError`` where models have different vocabularies, or nearly all of their lines quote the private text.
    """
    from tasks.distillation.contrast import contrast, contrasted_sentences
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    private = read_corpus(files.private)
    quoted = Quoted.of(private, files.sidecar, settings.scanned_words)
    model = open_learner(files.model)
    unwanted = open_learner(files.unwanted, "--unwanted") if files.unwanted else None
    owner = open_learner(files.mask_model, "--mask-model") if files.mask_model and settings.alpha else model
    for option, other in (("--unwanted", unwanted), ("--mask-model", owner)):
        if other is not None and other.vocabulary_hash != model.vocabulary_hash:
            raise ModelError(f"{option} and --model {files.model!r} have different vocabularies")
    weighted = contrast(model, unwanted, settings.strength, owner, settings.alpha)
    written: list[Words] = []
    counts: Counter[str] = Counter()
    seed, drawn = 1 if cell.seed is None else cell.seed, 0
    while len(written) < len(private):
        if drawn >= _MOST_DRAWN * len(private):
            raise ModelError(
                f"of {drawn:,} lines that {files.model!r} wrote, {counts['quoting'] + counts['verbatim']:,} quote the "
                "private text; give a model that has not read it"
            )
        wanted = len(private) - len(written)
        # Each further draw has a seed of its own.
        for words in contrasted_sentences(weighted, wanted, settings.longest, 1000 * seed + counts["draws"]):
            reason = quoted.reason(words)
            counts[reason] += 1
            if reason == "kept":
                written.append(words)
        drawn += wanted
        counts["draws"] += 1
    write_lines(files.output, [" ".join(words) for words in written], private=True)
    shown = (
        f"distil: {len(written):,} lines; dropped {counts['quoting']:,} with private words, {counts['verbatim']:,} "
        f"that are private lines, {counts['empty']:,} empty ones; text in {files.output}"
    )
    return Report(seed=cell.seed, shown=shown).measure(
        lines=len(written),
        words=sum(map(len, written)),
        distinct_words=len({word for words in written for word in words}),
        dropped_quoting=counts["quoting"],
        dropped_verbatim=counts["verbatim"],
        dropped_empty=counts["empty"],
        # Values that the summary reads from every fill: here no marker is filled and no masked word is restored.
        markers=0,
        distinct_fills=0,
        fallback_count=None,
        restoration=None,
        restoration_rate=None,
        expected_restoration_by_frequency=None,
        languages=None,
    )


@dataclass(frozen=True)
class Quoted:
    """Word sequences of a private text that another text must not contain."""

    lines: set[Words]
    neighbourhoods: set[Words]
    length: int
    """Words of a neighbourhood."""

    @classmethod
    def of(cls, private: Sequence[str], sidecar: str | None, length: int) -> "Quoted":
        """Collect them. Raises ``CorpusError`` for another text's sidecar."""
        reference_text_of(private, "the private text", {"private": sidecar} if sidecar else None)
        spans = read_sidecar(sidecar) if sidecar else iter([[] for _ in private])
        lines: set[Words] = set()
        neighbourhoods: set[Words] = set()
        for line, found in zip(private, spans, strict=True):
            placed = placed_words(line)
            words = tuple(word.word for word in placed)
            if len(words) >= length:
                lines.add(words)
            for number, word in enumerate(placed):
                if is_touched(word.start, word.end, found):
                    first = range(max(0, number - length + 1), min(number, len(words) - length) + 1)
                    neighbourhoods.update(words[start : start + length] for start in first)
        return cls(lines, neighbourhoods, length)

    def reason(self, words: Words) -> str:
        """Why a line is dropped: ``empty``, ``verbatim`` or ``quoting``; else ``kept``."""
        if not words:
            return "empty"
        if words in self.lines:
            return "verbatim"
        parts = (words[start : start + self.length] for start in range(len(words) - self.length + 1))
        return "kept" if self.neighbourhoods.isdisjoint(parts) else "quoting"


COMMAND = StageCommand(
    name="distil",
    stage=distil,
    settings=Distilled,
    files=DistilFiles,
    section="filling.{method}",
    cell=("method", "seed"),
    labels=("dataset", "technique"),
)
