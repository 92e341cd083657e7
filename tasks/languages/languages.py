"""Find the language of each word of a text, and measure how the text mixes its languages.

Name two languages or more with --pair; nothing else is needed. The languages are learned from the
text and from word frequencies of the package wordfreq. One of them may be a language that wordfreq
lacks, under any code. It is then learned from the text alone.

--output writes one JSON object a line:

  {"words": [...], "languages": ["de", "tr", "mixed", "name", null, ...],
   "code_mixing_index": 50.0, "switch_points": [1]}

  "mixed"   stem of one language with an ending of the other
  "name"    a name
  null      punctuation or a number

Words are divided at white space, and in Chinese and Japanese also by a dictionary. The output
contains the words of the text, so it is as private as the text. The terminal and the report get
numbers only.

Examples:
  palimpsest languages --pair de,tr --input talk.txt --output tags.jsonl
  palimpsest languages --pair de,tr --input talk.txt --labels labelled.jsonl --gold test.jsonl
"""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from tasks.command import StageCommand, StageFiles
from tasks.errors import CorpusError
from tasks.options import READ, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.audit.figure import Figure
    from tasks.languages.mixing import Mixing

SUMMARY = "find the language of each word of a mixed-language text"


class LanguagesFiles(StageFiles):
    """A text, and its optional labels."""

    pair: str
    """languages of the text as ISO 639-1 codes, such as de,tr"""
    input: Annotated[str, READ]
    """text, one sentence a line"""
    output: Annotated[str | None, WRITE] = None
    """file for the words and their languages, which only you can read"""
    labels: Annotated[str | None, READ] = None
    """lines with the language of each word, to learn from as well: JSON lines as in --output, or a published table"""
    gold: Annotated[str | None, READ] = None
    """lines as for --labels, used for scores only: F1 of each language and of switch points, precision and recall of
    names"""


def languages(settings: Settings, files: LanguagesFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Tag, measure and score; raises ``CorpusError`` where a text or labelled file is empty or of another form."""
    from tasks.audit.figure import fields_of
    from tasks.corpora.text_lines import line_writer, read_lines, refuse_no_sentences
    from tasks.languages.labelled_model import LabelledModel
    from tasks.languages.labelled_words import read_labelled_words
    from tasks.languages.mixing import Mixing, code_mixing_index, switch_points
    from tasks.languages.scores import OF_NAMES, language_scores
    from tasks.languages.segmentation import divider
    from tasks.languages.word_languages import LEARNED_FROM, WordLanguages
    from tasks.languages.word_lists import codes_of

    refuse_no_sentences(files.input)
    codes = codes_of(files.pair)
    divide = divider(codes)

    def lines() -> Iterator[list[str]]:
        return map(divide, read_lines(files.input))

    sample = list(islice(lines(), LEARNED_FROM))
    if not any(sample):
        raise CorpusError(f"text {files.input!r} holds no word; it needs at least one sentence")
    # Files that are of another form are refused before the text is learned.
    labelled, gold = (read_labelled_words(path, codes) if path else [] for path in (files.labels, files.gold))
    plain = WordLanguages(codes, sample, names=True)
    model = LabelledModel(plain, labelled) if labelled else plain
    mixing = Mixing(tuple(codes))
    with line_writer(files.output, private=True) if files.output else nullcontext() as output:
        for line in model.tag(lines()):
            mixing.add(line.languages)
            if output:
                of_line = {"words": line.words, "languages": line.languages}
                of_line |= {"code_mixing_index": round(code_mixing_index(line.languages), 1)}
                of_line |= {"switch_points": switch_points(line.languages)}
                output.write(json.dumps(of_line, ensure_ascii=False) + "\n")
    report = Report().measure(**mixing.fields())
    if other := plain.in_other_script:
        report.warn(
            f"the list of frequent words of {', '.join(other)} is in another script than the text, and is not used: "
            "learned from the text alone. Leave out a language that the text does not have"
        )
    if none := [code for code in plain.unlisted if code not in other]:
        report.warn(f"no list of frequent words of {', '.join(none)}: learned from the text alone")
    _show(mixing, codes)
    if gold:
        scores = language_scores(gold, [line.languages for line in model.tag(line.words for line in gold)], codes)
        for title, of_names in (("f1", False), ("names", True)):
            chosen = {name: score for name, score in scores.items() if (name in OF_NAMES) == of_names}
            report.measure(**{title: fields_of(chosen)})
        _show_scores(scores)
    return report


def _show(mixing: "Mixing", codes: list[str]) -> None:
    total = max(sum(mixing.words.values()), 1)
    shares = ", ".join(f"{code} {mixing.words[code] / total:.1%}" for code in [*codes, "mixed", "name"])
    print(f"{mixing.lines:,} lines, {total:,} words: {shares}", file=sys.stderr)
    if mixing.pairs:
        print(
            f"{mixing.switches:,} switch points, {mixing.switches / mixing.pairs:.3f} a pair of words; "
            f"{mixing.mixed_lines / mixing.lines:.1%} of the lines are mixed; code-mixing index "
            f"{mixing.index / mixing.lines:.1f}",
            file=sys.stderr,
        )


def _show_scores(scores: "dict[str, Figure]") -> None:
    from tasks.languages.scores import OF_NAMES

    for name, score in scores.items():
        if score.value is not None:
            ends = f" [{score.interval[0]:.1%}, {score.interval[1]:.1%}]" if score.interval else ""
            title = f"{name} of names" if name in OF_NAMES else f"F1 of {name}"
            print(f"  {title:<20} {score.value:.1%}{ends}", file=sys.stderr)


COMMAND = StageCommand(
    name="languages",
    stage=languages,
    settings=Settings,
    files=LanguagesFiles,
    section={},
)
