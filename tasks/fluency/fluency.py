"""Measure how well filled text reads, compared with the private text.

Perplexity measures how much a model learns from filled text, not whether people can read it. This
command compares each fill of a corpus with the private words in its places. It reads lines in which
a technique masked something. --params and --cell dataset=NAME say which fills there are.

The report has for each filled text:

- part_of_speech_match: share of fills with the part of speech of the masked word, such as noun.
- form_match: share of fills with its tag, such as plural or past. A tagger reads both lines.
- repeated: share of fills that equal a neighbouring word; repeated_before is that of masked words.
- variety: number of different fills, divided by that of different masked words in the same places.
- times_raw_perplexity: perplexity of the filled lines divided by that of the private lines. A
  language model measures both.

If one word fills a run of markers, it is compared with the last masked word of the run. The report
has such numbers only, no line and no word.

example:
  palimpsest fluency --params params.yaml --cell dataset=chat --raw data/private/corpora/chat/train.txt \\
    --masked data/private/masked/chat/train --fills data/obfuscated/chat --report results/reports/fluency/chat.json
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from tasks.command import Invocation, StageCommand, StageFiles
from tasks.errors import ModelError, ParameterError
from tasks.filling.methods import AnyMethod
from tasks.fluency.settings import FluencySettings
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.cells import expected_cells, is_filled
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.audit.figure import Figure
    from tasks.corpora.sidecar import MaskedSpan
    from tasks.filling.masked_sentence import MaskedSentence
    from tasks.language_model.language_models import LanguageModel

SUMMARY = "measure how well filled text reads: parts of speech, repetitions, perplexity"
_SAMPLES, _CONFIDENCE = 1000, 0.95


class FluencyFiles(StageFiles):
    """A corpus, with its masked and filled texts."""

    raw: Annotated[str, READ]
    """private text, one sentence a line"""
    masked: Annotated[str, READ]
    """masked texts made from it, a folder for each technique"""
    fills: Annotated[str, READ]
    """filled texts made from it, a folder for each technique"""


class FluencyOfCells(FluencySettings):
    """The section ``fluency``, with the methods of the fills."""

    filled: list[tuple[Cell, AnyMethod]] = Field(default_factory=list, exclude=True)
    """Cells of the corpus that have a filled text, with their method."""


@dataclass(frozen=True, slots=True)
class WordForm:
    """Form of a word in its context."""

    start: int
    end: int
    part_of_speech: str
    """Part of speech of Universal Dependencies: ``NOUN``."""
    form: str
    """Tag of the pipeline's own set, which includes number and tense: ``NNS``."""


class WordForms:
    """Tags lines, with a pipeline that is loaded once."""

    def __init__(self, pipeline: str) -> None:
        """Raises ``ModelError`` if the pipeline cannot be loaded, or tags no parts of speech."""
        from tasks.masking.taggers.spacy_tagger import read_pipeline

        self._pipeline = read_pipeline(pipeline)
        needless = {"ner", "parser", "lemmatizer", "senter", "textcat", "entity_ruler"}
        for name in needless & set(self._pipeline.pipe_names):
            self._pipeline.disable_pipe(name)
        if not {"tagger", "morphologizer"} & set(self._pipeline.pipe_names):
            raise ModelError(
                f"spaCy pipeline {pipeline!r} tags no parts of speech; it has "
                f"{', '.join(self._pipeline.pipe_names) or 'nothing'}: name one with a tagger as fluency.tagger"
            )

    def of(self, lines: Iterable[str]) -> Iterator[list[WordForm]]:
        """The words of each line."""
        for document in self._pipeline.pipe(lines, batch_size=256):
            yield [
                WordForm(token.idx, token.idx + len(token), token.pos_, token.tag_)
                for token in document
                if not token.is_space
            ]


def form_at(forms: Sequence[WordForm], start: int, end: int) -> WordForm | None:
    """The form of a span of the line: that of its first longest word; ``None`` without a word."""
    inside = [form for form in forms if form.start < end and form.end > start]
    return max(inside, key=lambda form: form.end - form.start, default=None)


def fluency(settings: FluencyOfCells, files: FluencyFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Measure every fill of the corpus.

    Raises ``CorpusError`` if texts do not belong together, ``ModelError`` if tagger or judge cannot be loaded.
    """
    from tasks.corpora.text_lines import read_corpus
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    raw = read_corpus(files.raw)
    forms, judge = WordForms(settings.tagger), _judge(settings)
    found: dict[str, dict[str, Any]] = {}
    for technique in dict.fromkeys(filled.technique for filled, _ in settings.filled):
        sample = _Sample.drawn(raw, Path(files.masked) / str(technique), forms, settings)
        fills = [each for each in settings.filled if each[0].technique == technique]
        texts = [sample.fill(_text_of(filled, files), method) for filled, method in fills]
        judged = _judged(judge, sample, texts, settings)
        for (filled, _), text, measured in zip(fills, texts, judged, strict=True):
            found[filled.path] = _measured(sample, text, forms) | measured
    shown = "\n".join(f"{path}: {_shown(of_fill)}" for path, of_fill in found.items())
    return Report(shown=shown).measure(by_fill=found)


def _text_of(cell: Cell, files: FluencyFiles) -> Path:
    return Path(files.fills) / f"{replace(cell, dataset=None).path}.txt"


def _judge(settings: FluencySettings) -> "LanguageModel | None":
    if settings.judge is None:
        return None
    from tasks.language_model.causal_lm.folder import load_for_scoring

    return load_for_scoring(settings.judge)


@dataclass(frozen=True)
class _Filled:
    """One line of a sample: the masked sentence with its record of the sidecar, and the first copy of its fill."""

    sentence: "MaskedSentence"
    line: str


@dataclass(frozen=True)
class _Sample:
    """Lines of a corpus in which a technique masked a word."""

    masked: Path
    lines: dict[int, str]
    """Private lines by their number, from 1, in the order of the draw."""
    spans: "dict[int, list[MaskedSpan]]"
    """Masked spans of each line."""
    forms: dict[int, list[WordForm]]

    @classmethod
    def drawn(cls, raw: Sequence[str], masked: Path, forms: WordForms, settings: FluencySettings) -> "_Sample":
        """Draw the number of lines in the settings, or all."""
        from tasks.corpora.sidecar import read_sidecar
        from tasks.filling.aligned_fills import side_by_side

        both = side_by_side(raw, read_sidecar(masked / "sidecar.jsonl"))
        marked = {number: (line, spans) for number, (line, spans) in enumerate(both, start=1) if spans}
        numbers = Random(settings.seed).sample(list(marked), min(settings.lines, len(marked)))
        lines, spans = ({number: marked[number][part] for number in numbers} for part in (0, 1))
        return cls(masked, lines, spans, dict(zip(numbers, forms.of(lines.values()), strict=True)))

    def fill(self, path: Path, method: AnyMethod) -> dict[int, _Filled]:
        """The same lines of a filled text."""
        from tasks.filling.aligned_fills import filled_lines
        from tasks.filling.masked_sentence import with_spans

        lines = filled_lines(self.masked / "text.txt", path, method.copies, merge_markers=method.merges_markers)
        return {
            sentence.number: _Filled(with_spans(sentence, self.spans[sentence.number]), copies[0])
            for sentence, copies in lines
            if sentence.number in self.spans
        }


def _measured(sample: _Sample, text: dict[int, _Filled], forms: WordForms) -> dict[str, Any]:
    """The measures by tagger and words; empty for a text whose lines were rewritten."""
    from tasks.audit.figure import share_figure
    from tasks.corpora.words import fold
    from tasks.filling.masked_sentence import fills_of, spans_of_slots

    places: list[int] = []
    kept: dict[str, list[int]] = {"part_of_speech_match": [], "form_match": [], "repeated": [], "repeated_before": []}
    substitutes, originals = set(), set()
    tagged = forms.of(text[number].line for number in sample.lines)
    for (number, raw), found in zip(sample.lines.items(), tagged, strict=True):
        filled = text[number]
        stretches = fills_of(filled.sentence, filled.line)
        if stretches is None:
            continue
        hits = dict.fromkeys(kept, 0)
        masked = [spans[-1] for spans in spans_of_slots(filled.sentence)]
        for (start, end), span in zip(stretches, masked, strict=True):
            before, now = form_at(sample.forms[number], span.start, span.end), form_at(found, start, end)
            if before is not None and now is not None:
                hits["part_of_speech_match"] += before.part_of_speech == now.part_of_speech
                hits["form_match"] += before.form == now.form
            hits["repeated"] += _stands_beside_itself(filled.line, start, end)
            hits["repeated_before"] += _stands_beside_itself(raw, span.start, span.end)
            substitutes.add(fold(filled.line[start:end]))
            originals.add(fold(span.original))
        places.append(len(masked))
        for name, count in hits.items():
            kept[name].append(count)
    repeated_before = sum(kept.pop("repeated_before"))
    figures = {name: share_figure(hits, places, "") for name, hits in kept.items()}
    return {
        **_fields(figures),
        "repeated_before": repeated_before / sum(places) if places else None,
        "variety": len(substitutes) / len(originals) if originals else None,
        "places": sum(places),
    }


def _fields(figures: "dict[str, Figure]") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, figure in figures.items():
        found |= {name: figure.value, f"{name}_ci": list(figure.interval) if figure.interval else None}
    return found


def _stands_beside_itself(line: str, start: int, end: int) -> bool:
    from tasks.corpora.words import fold, words_of

    word = fold(line[start:end])
    around = [*words_of(line[:start])[-1:], *words_of(line[end:])[:1]]
    return word in map(fold, around)


def _judged(
    judge: "LanguageModel | None", sample: _Sample, texts: Sequence[dict[int, _Filled]], settings: FluencySettings
) -> Iterator[dict[str, Any]]:
    """Each text's probability by the judge, relative to the private lines; a missing word is no gain."""
    from tasks.audit.resampling import perplexity_ratio

    numbers = list(sample.lines)[: settings.judged_lines]
    if judge is None or not numbers:
        yield from ({} for _ in texts)
        return
    groups = [
        [tuple(line.split()) for line in (sample.lines[number], *(text[number].line for text in texts))]
        for number in numbers
    ]
    logs = np.stack(judge.score_sentences(groups))  # (lines, 1 + texts)
    targets = np.array([[len(words) + 1 for words in group] for group in groups], dtype=np.float64)
    for column in range(1, logs.shape[1]):
        both = [column, 0]
        ratio, ends = perplexity_ratio(logs[:, both], targets[:, both], _SAMPLES, _CONFIDENCE, settings.seed)
        yield {
            "times_raw_perplexity": ratio,
            "times_raw_perplexity_ci": list(ends) if ends else None,
            "judged_lines": len(logs),
        }


def _shown(measured: dict[str, Any]) -> str:
    shares = ("part_of_speech_match", "form_match", "repeated")
    parts = [f"{name.replace('_', ' ')} {measured[name]:.1%}" for name in shares if measured.get(name) is not None]
    if (ratio := measured.get("times_raw_perplexity")) is not None:
        parts.append(f"{ratio:.2f} times the raw text's perplexity")
    return ", ".join(parts) or "nothing to measure"


@dataclass(frozen=True)
class FluencyCommand(StageCommand[FluencyOfCells, FluencyFiles]):
    """The stage, which needs the list of a corpus' fills."""

    def parse(self, arguments: argparse.Namespace) -> Invocation[FluencyOfCells, FluencyFiles]:
        """The call in the options; ``ParameterError`` without a parameter file and a corpus in it."""
        from tasks.parameters.parameter_file import read_sections

        found = super().parse(arguments)
        if not found.params or not found.cell.dataset:
            raise ParameterError("the fills of a corpus follow from params.yaml; give --params and --cell dataset=NAME")
        others = ["compare", "filling"]
        read = read_sections(found.params, others)
        cells = [each for each in expected_cells(read["compare"]) if is_filled(each)]
        filled = [(each, read["filling"][each.method]) for each in cells if each.dataset == found.cell.dataset]
        settings = found.settings.model_copy(update={"filled": filled})
        return replace(found, settings=settings, sections=[*others, *found.sections])


def _inputs(settings: FluencyOfCells, files: FluencyFiles) -> list[str]:
    return [files.raw, files.masked, *(str(_text_of(filled, files)) for filled, _ in settings.filled)]


COMMAND = FluencyCommand(
    name="fluency",
    stage=fluency,
    settings=FluencyOfCells,
    files=FluencyFiles,
    section="fluency",
    labels=("dataset",),
    seed=None,
    inputs_of=_inputs,
)
