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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from tasks.audit.figure import perplexity_ratio, share_figure
from tasks.command import Invocation, StageCommand, StageFiles
from tasks.corpora.sidecar import MaskedSpan, read_sidecar
from tasks.corpora.text_lines import read_corpus
from tasks.corpora.words import fold, words_of
from tasks.errors import ModelError, ParameterError
from tasks.filling.aligned_fills import filled_lines, side_by_side
from tasks.filling.masked_sentence import MaskedSentence, fills_of, spans_of_slots, with_spans
from tasks.filling.methods import AnyMethod
from tasks.fluency.settings import FluencySettings
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.cells import expected_cells, is_filled
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.language_model.language_models import LanguageModel

SUMMARY = "measure how well filled text reads: parts of speech, repetitions, perplexity"
_SHARES = ("part_of_speech_match", "form_match", "repeated")
Form = tuple[int, int, str, str]
"""Start and end of a word, its part of speech (``NOUN``), and its tag of the pipeline's own set (``NNS``)."""
Tag = Callable[[Iterable[str]], Iterator[list[Form]]]
"""Tags the words of each line."""
Lines = Mapping[int, tuple[str, list[MaskedSpan]]]
"""Private lines with their masked spans, by number from 1."""
Filled = tuple[MaskedSentence, str]
"""A masked sentence with its record of the sidecar, and the first copy of its fill."""


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


def fluency(settings: FluencyOfCells, files: FluencyFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Measure every fill of the corpus.

    Raises ``CorpusError`` if texts do not belong together, ``ModelError`` if tagger or judge cannot be loaded.
    """
    from tasks.language_model.causal_lm.folder import load_for_scoring
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    raw, tag = read_corpus(files.raw), _tagger(settings.tagger)
    judge = load_for_scoring(settings.judge) if settings.judge is not None else None
    found: dict[str, dict[str, Any]] = {}
    for technique in dict.fromkeys(filled.technique for filled, _ in settings.filled):
        masked = Path(files.masked) / str(technique)
        lines = _drawn(raw, masked, settings)
        fills = {
            each.path: _fill(masked, _text_of(each, files), method, lines)
            for each, method in settings.filled
            if each.technique == technique
        }
        judged = _judged(judge, lines, list(fills.values()), settings)
        forms = dict(zip(lines, tag(line for line, _ in lines.values()), strict=True))
        for (path, text), measured in zip(fills.items(), judged, strict=True):
            found[path] = _measured(lines, forms, text, tag) | measured
    shown = "\n".join(f"{path}: {_shown(of_fill)}" for path, of_fill in found.items())
    return Report(shown=shown).measure(by_fill=found)


def _text_of(cell: Cell, files: FluencyFiles) -> Path:
    return Path(files.fills) / f"{replace(cell, dataset=None).path}.txt"


def _tagger(pipeline: str) -> Tag:
    """Raises ``ModelError`` if the pipeline cannot be loaded, or tags no parts of speech."""
    from tasks.masking.taggers.spacy_tagger import read_pipeline

    loaded = read_pipeline(pipeline)
    for name in {"ner", "parser", "lemmatizer", "senter", "textcat", "entity_ruler"} & set(loaded.pipe_names):
        loaded.disable_pipe(name)
    if not {"tagger", "morphologizer"} & set(loaded.pipe_names):
        raise ModelError(
            f"spaCy pipeline {pipeline!r} tags no parts of speech; name one with a tagger as fluency.tagger"
        )

    def tag(lines: Iterable[str]) -> Iterator[list[Form]]:
        for document in loaded.pipe(lines, batch_size=256):
            words = (token for token in document if not token.is_space)
            yield [(token.idx, token.idx + len(token), token.pos_, token.tag_) for token in words]

    return tag


def _drawn(raw: Sequence[str], masked: Path, settings: FluencySettings) -> Lines:
    """Lines in which a technique masked a word, in the order of the draw."""
    both = enumerate(side_by_side(raw, read_sidecar(masked / "sidecar.jsonl")), start=1)
    marked = {number: (line, spans) for number, (line, spans) in both if spans}
    numbers = Random(settings.seed).sample(list(marked), min(settings.lines, len(marked)))
    return {number: marked[number] for number in numbers}


def _fill(masked: Path, path: Path, method: AnyMethod, lines: Lines) -> dict[int, Filled]:
    """The drawn lines of a filled text."""
    merged = filled_lines(masked / "text.txt", path, method.copies, merge_markers=method.merges_markers)
    return {
        sentence.number: (with_spans(sentence, lines[sentence.number][1]), copies[0])
        for sentence, copies in merged
        if sentence.number in lines
    }


def _measured(
    lines: Lines,
    forms: Mapping[int, Sequence[Form]],
    text: Mapping[int, Filled],
    tag: Tag,
) -> dict[str, Any]:
    """The measures by tagger and words; without a place for a text whose lines were rewritten."""
    hits: list[list[int]] = []
    places: list[int] = []
    repeated_before, substitutes, originals = 0, set(), set()
    tagged = tag(text[number][1] for number in lines)
    for (number, (raw, _)), found in zip(lines.items(), tagged, strict=True):
        sentence, line = text[number]
        stretches = fills_of(sentence, line)
        if stretches is None:
            continue
        of_line = [0, 0, 0]
        masked = [spans[-1] for spans in spans_of_slots(sentence)]
        for (start, end), span in zip(stretches, masked, strict=True):
            before, now = _form_at(forms[number], span.start, span.end), _form_at(found, start, end)
            if before is not None and now is not None:
                of_line[0] += before[2] == now[2]
                of_line[1] += before[3] == now[3]
            of_line[2] += _is_repeated(line, start, end)
            repeated_before += _is_repeated(raw, span.start, span.end)
            substitutes.add(fold(line[start:end]))
            originals.add(fold(span.original))
        places.append(len(masked))
        hits.append(of_line)
    shares = zip(_SHARES, zip(*hits, strict=True) if hits else ((), (), ()), strict=True)
    measured = {key: value for name, of in shares for key, value in share_figure(of, places, "").ends(name).items()}
    return measured | {
        "repeated_before": repeated_before / sum(places) if places else None,
        "variety": len(substitutes) / len(originals) if originals else None,
        "places": sum(places),
    }


def _form_at(forms: Sequence[Form], start: int, end: int) -> Form | None:
    """The form of a span of the line: that of its first longest word; ``None`` without a word."""
    inside = [form for form in forms if form[0] < end and form[1] > start]
    return max(inside, key=lambda form: form[1] - form[0], default=None)


def _is_repeated(line: str, start: int, end: int) -> bool:
    around = [*words_of(line[:start])[-1:], *words_of(line[end:])[:1]]
    return fold(line[start:end]) in map(fold, around)


def _judged(
    judge: "LanguageModel | None", lines: Lines, texts: Sequence[Mapping[int, Filled]], settings: FluencySettings
) -> Iterator[dict[str, Any]]:
    """Each text's probability by the judge, relative to the private lines; a missing word is no gain."""
    numbers = list(lines)[: settings.judged_lines]
    if judge is None or not numbers:
        yield from ({} for _ in texts)
        return
    groups = [
        [tuple(line.split()) for line in (lines[number][0], *(text[number][1] for text in texts))] for number in numbers
    ]
    logs = np.stack(judge.score_sentences(groups))  # (lines, 1 + texts)
    targets = np.array([[len(words) + 1 for words in group] for group in groups], dtype=np.float64)
    for column in range(1, logs.shape[1]):
        ratio = perplexity_ratio(logs[:, [column, 0]], targets[:, [column, 0]], settings.seed)
        yield ratio.ends("times_raw_perplexity") | {"judged_lines": len(logs)}


def _shown(measured: dict[str, Any]) -> str:
    parts = [f"{name.replace('_', ' ')} {measured[name]:.1%}" for name in _SHARES if measured.get(name) is not None]
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


COMMAND = FluencyCommand(
    name="fluency",
    stage=fluency,
    settings=FluencyOfCells,
    files=FluencyFiles,
    section="fluency",
    labels=("dataset",),
    seed=None,
    inputs_of=lambda settings, files: [
        files.raw,
        files.masked,
        *(str(_text_of(one, files)) for one, _ in settings.filled),
    ],
)
