"""The recipe of a cell: how a finished run made it, and the function that makes parts of another text in the same way.

Settings are those in the run's reports. What a fill learned comes from the run's files: the secret from its sidecar,
counts and weights from its masked text. So no line of another text is learned from or counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tasks.corpora.sidecar import sidecar_line
from tasks.corpora.text_lines import read_documents, read_lines
from tasks.errors import CorpusError, ParameterError
from tasks.filling.fill import COMMAND as FILL
from tasks.filling.fill_files import FillFiles
from tasks.filling.filled_lines import Part
from tasks.filling.opened_filler import OpenedFiller
from tasks.filling.prepared_fill import Corpus, PreparedFill, prepare_fill
from tasks.masking.mask import COMMAND as MASK
from tasks.masking.masked_lines import MaskedPart, masker
from tasks.masking.settings import TechniqueSettings
from tasks.masking.techniques import AnyTechnique
from tasks.parts import PART_LINES, Advance, Work
from tasks.privacy.released_cell import FilledCell, find_cell, stage_files
from tasks.privacy.settings import ReleaseSettings
from tasks.records.cell import Cell
from tasks.records.cells import BASELINES, mask_report
from tasks.records.stage_report import content_hash, read_report
from tasks.results.report_index import REPORTS
from tasks.settings.checks import check_settings
from tasks.settings.resources import ResourceSettings

SUMS = ("words", "masked_words", "masked_lines")
"""Counts of the masking that are added up over the portions."""


@dataclass(frozen=True)
class MadeCell:
    """A cell of the finished run with a text, as recorded in its reports."""

    cell: Cell
    mask: dict[str, Any]
    filled: FilledCell | None
    """The filled cell; ``None`` for a baseline, whose text is the masked text."""

    @property
    def reports(self) -> list[dict[str, Any]]:
        """The reports of its steps."""
        return [self.mask, *([self.filled.fill] if self.filled else [])]

    @property
    def counted(self) -> dict[str, Any] | None:
        """The noisy counts of the run that the fill uses, if any."""
        found = self.filled.fill["measured"].get("counted_frequencies") if self.filled else None
        return {name: found[name] for name in ("counts", "epsilon", "unit")} if found else None

    def check(self) -> None:
        """Raise ``CorpusError`` if a file of the run has changed since."""
        for report in self.reports:
            for path, digest in {**report["inputs"], **report["outputs"]}.items():
                if content_hash(path) != digest:
                    raise CorpusError(
                        f"{path!r} has changed since the run made {self.cell.path!r}. Run: palimpsest run"
                    )


def find_made(name: str) -> MadeCell:
    """The cell of a path such as ``mail/crf/surrogate-1``, or ``mail/crf/baseline1-1`` for the masked text.

    ``CorpusError`` if there is no report of it.
    """
    dataset, technique, method, *_ = (*name.split("/"), "", "", "")
    if method.rpartition("-")[0] in BASELINES:
        cell = Cell(dataset=dataset, technique=technique, method=method.rpartition("-")[0])
        return MadeCell(cell, read_report(Path(REPORTS) / str(mask_report(cell))), None)
    filled = find_cell(name, REPORTS, with_model=False)
    return MadeCell(filled.cell, filled.mask, filled)


@dataclass(frozen=True)
class Portion:
    """Some consecutive lines of a text, for one copy of its fill."""

    number: int
    """Number of the portion in the text, from 0."""
    first_line: int
    """Number of its first line for draws; it continues from copy to copy."""
    lines: list[str]
    documents: list[str] | None


@dataclass(frozen=True)
class AppliedPortion:
    """A portion as the cell has it."""

    lines: list[str]
    sidecar: list[str]
    """Lines of the sidecar."""
    counts: dict[str, int]


@dataclass(frozen=True)
class Recipe:
    """All that a worker needs to mask and fill parts of a text."""

    technique: TechniqueSettings
    word_counts: str | None
    threads: int
    prepared: PreparedFill | None
    """The fill; ``None`` leaves the text masked."""
    fill_files: FillFiles | None
    own_raw: str
    own_text: str

    @property
    def copies(self) -> int:
        """The number of fills of the text, one after the other."""
        return self.prepared.method.copies if self.prepared else 1

    @property
    def uses_model(self) -> bool:
        """Whether the fill needs a language model."""
        return self.prepared is not None and self.prepared.method.uses_filler

    @property
    def documents(self) -> str | None:
        """File with the document of each line of the run's text, if the fill needs them."""
        return self.fill_files.documents if self.fill_files else None

    def work(self) -> Work:
        """The function that masks and fills a portion, as the stages 'mask' and 'fill' do."""
        mask = masker(self.technique, self.word_counts, self.threads, with_spans=True, learned_from=self.own_raw)
        fill = self.prepared.work() if self.prepared else None
        # As in the fill of a corpus: with noisy counts nothing else reads the masked words.
        counts_words = self.prepared is not None and self.prepared.method.counts_masked_words
        with_spans = self.fill_files is not None and self.fill_files.sidecar is not None and not counts_words

        def applied(portion: Portion, advance: Advance) -> AppliedPortion:
            masked: MaskedPart = mask((portion.number, portion.lines), advance)
            lines, spans = [line for line, _ in masked.lines], [found for _, found in masked.lines]
            if fill:
                part = Part(portion.first_line, lines, spans if with_spans else None, portion.documents)
                lines = fill(part, advance).lines
            sidecar = [sidecar_line(number, one) for number, one in enumerate(spans, portion.number * PART_LINES + 1)]
            return AppliedPortion(lines, sidecar, {name: getattr(masked.tally, name) for name in SUMS})

        return applied

    def own_portion(self) -> tuple[Portion, list[str]]:
        """The first lines of the run's own text, and the lines that the run made of them."""
        portion = next(_portions(self.own_raw, self.documents, 0, 1))
        return portion, list(islice(read_lines(self.own_text), len(portion.lines)))

    def portions(self, raw: Path, documents: Path | None, lines: int) -> Iterator[Portion]:
        """The portions of a text of so many lines, copy by copy."""
        for copy in range(self.copies):
            yield from _portions(raw, documents, copy * lines, -(-lines // PART_LINES))


def _portions(raw: str | Path, documents: str | Path | None, before: int, number: int) -> Iterator[Portion]:
    lines, names = read_lines(raw), read_documents(documents) if documents else None
    for portion in range(number):
        some = list(islice(names, PART_LINES)) if names else None
        yield Portion(portion, before + portion * PART_LINES + 1, list(islice(lines, PART_LINES)), some)


def recipe_of(made: MadeCell, resources: ResourceSettings, release: ReleaseSettings) -> Recipe:
    """The recipe of a cell. Raises the errors of ``prepare_fill``."""
    files = stage_files(MASK, made.mask)
    technique = check_settings(AnyTechnique, made.mask["parameters"], f"masking of {made.cell.path}")
    given = (technique, files.word_counts, resources.threads)
    if made.filled is None:
        return Recipe(*given, None, None, files.input, files.output)
    method = made.filled.method
    read = stage_files(FILL, made.filled.fill).read_by(method)
    corpus = Corpus(read, made.cell, release)
    prepared = prepare_fill(method, corpus, OpenedFiller(read.filler, resources.threads, read.word_counts))
    return Recipe(*given, prepared, read, files.input, read.output)


def check_same(made: list[str], own: list[str], cell: str) -> None:
    """Raise ``ParameterError`` if the recipe makes other lines of the run's text than the run did."""
    differing = sum(one != other for one, other in zip(made, own, strict=False)) + abs(len(made) - len(own))
    if differing:
        raise ParameterError(
            f"{differing:,} of the first {len(own):,} lines of {cell!r} come out different now: code, libraries or "
            "device have changed since the run. Run: palimpsest run, then apply it"
        )
