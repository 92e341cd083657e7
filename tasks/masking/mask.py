"""Mask the private words of a text.

The technique (--technique) decides which words are private. The end of this help lists the
techniques. 'palimpsest preview' shows which words a technique would mask, and why.

A marker replaces each masked word: [MASK], or its class, such as [PERSON]. All other characters
stay, with punctuation and white space. The number and order of the lines stay too. Line ends become
line feeds, the last line gets one, and a byte order mark is removed.

A marker that the text itself contains is escaped ([\\MASK]). 'palimpsest fill' restores it.

Examples:
  palimpsest mask --technique allow_list --input mail.txt --output masked.txt
  palimpsest mask --technique allow_list --input mail.parquet --output masked.parquet
  cat mail.txt | palimpsest mask --technique entity_tagger --set markers.style=class --input - --output -
  palimpsest count-words --input generic.txt --output counts.tsv
  palimpsest mask --technique vocabulary_threshold --word-counts counts.tsv --input mail.txt --output masked.txt
  palimpsest mask --technique combination --set rule=union \\
    --set 'parts=[{kind: allow_list}, {kind: entity_tagger}]' --input mail.txt --output -
"""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import repeat, tee
from typing import TYPE_CHECKING, Annotated

from tasks.command import StageCommand, StageFiles
from tasks.masking.settings import MANY_MASKED, TechniqueSettings
from tasks.masking.techniques import TECHNIQUES_HELP, AnyTechnique, settings_named
from tasks.options import READ, READ_STREAM, WRITE, WRITE_STREAM
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.languages.word_languages import TaggedLine

SUMMARY = "mask the private words of a text"


class MaskFiles(StageFiles):
    """Files that masking reads and writes."""

    input: Annotated[str, READ_STREAM]
    """text, one sentence a line"""
    output: Annotated[str, WRITE_STREAM]
    """masked text; as private as the text itself"""
    word_counts: Annotated[str | None, READ] = None
    """word counts of generic text, for vocabulary_threshold only"""
    sidecar: Annotated[str | None, WRITE] = None
    """file for the masked words and their places; as private as the text itself"""
    allowed_words: Annotated[str | None, WRITE] = None
    """file for the words that are never masked, one a line"""
    languages: str | None = None
    """languages of a mixed text, such as en,es; the report has the share masked of each"""


def mask(settings: TechniqueSettings, files: MaskFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Write the masked text and the optional files (paper 3.1).

    Raises ``CorpusError`` if the text has no sentence, ``ModelError`` if a tagger's model is missing.
    """
    from tasks.corpora.languages import WatchedText
    from tasks.corpora.sidecar import sidecar_line
    from tasks.corpora.text_lines import empty_text, line_writer, read_lines, refuse_no_sentences, write_lines
    from tasks.languages.masked_words import MaskedWords
    from tasks.languages.word_lists import codes_of
    from tasks.masking.masked_lines import masked_lines
    from tasks.masking.technique import MaskingTally

    refuse_no_sentences(files.input)
    technique = settings.build(files.word_counts, resources.threads)
    for line in technique.announcements():
        print(line, file=sys.stderr)
    tally = MaskingTally()
    codes = codes_of(files.languages) if files.languages else technique.mixes
    counted = MaskedWords(codes) if codes and technique.by_language is None else None
    clock = time.perf_counter()
    text = WatchedText(read_lines(files.input))
    lines, told = tee(_with_progress(text)) if counted else (_with_progress(text), ())
    with_spans = files.sidecar is not None or counted is not None
    masked = masked_lines(technique, lines, tally, settings, files, resources, with_spans=with_spans)
    with (
        line_writer(files.output, private=True) as output,
        line_writer(files.sidecar, private=True) if files.sidecar else nullcontext() as sidecar,
    ):
        tagged: Iterator[tuple[str, TaggedLine] | None] = repeat(None)
        if counted:
            from tasks.languages.word_languages import tagged_lines

            _, tagged = tagged_lines(codes, told)
        for number, ((line, spans), known) in enumerate(zip(masked, tagged, strict=False), start=1):
            output.write(line + "\n")
            if sidecar is not None:
                sidecar.write(sidecar_line(number, spans))
            if counted and known:
                counted.add(*known, (span.start for span in spans))
        if tally.lines == tally.empty_lines:
            raise empty_text(files.input)
    seconds = time.perf_counter() - clock
    allowed_words = technique.allowed_words
    if files.allowed_words:
        of_one = (f"{word}\t{code}" for code, words in technique.allowed_by_language.items() for word in sorted(words))
        write_lines(files.allowed_words, [*sorted(allowed_words or ()), *of_one], private=True)
    share = f"{tally.masked_fraction:.1%}" if tally.masked_fraction is not None else "none"
    print(
        f"{cell.technique}: {tally.masked_words:,} of {tally.words:,} words masked ({share}) "
        f"in {tally.lines:,} lines; {tally.words / seconds:,.0f} words/s",
        file=sys.stderr,
    )
    report = Report(warnings=text.warnings(technique.name, technique.languages))
    if tally.masked_words > MANY_MASKED * tally.words:
        report.warn(
            f"{share} of the words are masked, more than half: what is left says little, and a fill of it is mostly "
            "made up; a technique that finds less, or a longer list of words to keep, may do"
        )
    by_language = technique.by_language or counted or MaskedWords(())
    report.warnings += by_language.warnings()
    return report.measure(
        lines=tally.lines,
        empty_lines=tally.empty_lines,
        masked_lines=tally.masked_lines,
        words=tally.words,
        masked_words=tally.masked_words,
        masked_fraction=tally.masked_fraction,
        masked_by_class=dict(sorted(tally.labels.items())),
        allowed_words=None if allowed_words is None else len(allowed_words),
        marker_language_bits=technique.marker_language_bits,
        **by_language.fields(),
    )


def _with_progress(lines: Iterable[str]) -> Iterator[str] | Iterable[str]:
    """The lines, with a progress bar on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        return lines
    from tqdm import tqdm

    return tqdm(lines, unit=" lines", unit_scale=True, mininterval=0.5, desc="mask")


COMMAND = StageCommand(
    name="mask",
    stage=mask,
    settings=AnyTechnique,
    files=MaskFiles,
    section="masking.{technique}",
    cell=("technique",),
    labels=("dataset",),
    named_settings=settings_named,
    files_of_settings=lambda settings: settings.files,
    epilog=TECHNIQUES_HELP,
)
