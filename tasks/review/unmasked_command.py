"""Estimate how many identifiers each masking technique leaves unmasked in a private text.

--cell dataset=NAME names the corpus. If a person has reviewed lines of it ('palimpsest review'),
the figures are estimates from that review, with 95 % intervals.

Otherwise the reference reader counts. It is the technique 'every_tagger', and its sidecar has its
findings. The counts are corrected for its precision and recall on other kinds of text. Each kind
gives another corrected count. The interval is the range of these counts.

example:
  palimpsest unmasked --cell dataset=mail --text data/private/corpora/mail/train.txt \\
    --masked data/private/masked/mail/train --reader data/private/masked/mail/train/every_tagger --report -
"""

from pathlib import Path
from typing import Annotated, Any

from tasks.command import StageCommand, StageFiles
from tasks.errors import ParameterError
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.review.estimate import Interval, Unmasked
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings

_KNOWN = ["en"]
"""Languages of the reference reader."""
SUMMARY = "estimate how many identifiers each masking technique leaves unmasked"


class UnmaskedFiles(StageFiles):
    """A private text, and its masked versions."""

    text: Annotated[str, READ]
    """private text, one sentence a line"""
    masked: Annotated[str, READ]
    """masked texts made from it, a folder with a sidecar for each technique"""
    reader: Annotated[str, READ]
    """folder of the text masked by 'every_tagger', whose sidecar has the findings of the reference reader"""


def unmasked(settings: Settings, files: UnmaskedFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Count, for each technique of the folder.

    Raises ``ParameterError`` if the corpus is not named, ``CorpusError`` if texts do not belong together.
    """
    from tasks.corpora.languages import WatchedText
    from tasks.corpora.text_lines import read_lines
    from tasks.language_model.evaluation.reference_text import sidecars_in
    from tasks.review.agreement import agreements
    from tasks.review.record import prefix_length, review_of
    from tasks.review.unmasked import unmasked_by_technique

    if cell.dataset is None:
        raise ParameterError("no corpus is named, by which a review is found; give --cell dataset=NAME")
    text = Path(files.text)
    found = unmasked_by_technique(cell.dataset, text, sidecars_in(files.masked), Path(files.reader) / "sidecar.jsonl")
    watched = WatchedText(read_lines(text))
    lines = list(watched)
    review = review_of(cell.dataset, text)
    kappas = [agreement.kappa_class for agreement in agreements(review, lines)] if review else []
    report = Report().measure(
        techniques={
            name: {
                "by": technique.by,
                "basis": technique.basis,
                "direct": _fields(technique.direct),
                "quasi": _fields(technique.quasi),
                "classes": {label: _fields(of_class) for label, of_class in technique.classes.items()},
            }
            for name, technique in found.items()
        },
        lines=len(lines),
        reviewed_lines=prefix_length(review) if review else 0,
        reviewers=len({line.reviewer for line in review.lines}) if review else 0,
        kappa=min((kappa for kappa in kappas if kappa is not None), default=None),
    )
    if review is None or not review.lines:
        report.warnings += watched.warnings("the reference reader", _KNOWN)
    report.shown = "\n".join(_shown(name, technique.direct, technique.basis) for name, technique in found.items())
    return report


def _fields(found: Unmasked) -> dict[str, Any]:
    return {
        "unmasked_per_1000": round(found.per_thousand.value, 3),
        "unmasked_per_1000_ci": _ends(found.per_thousand),
        "recall": None if found.recall is None else round(found.recall.value, 4),
        "recall_ci": None if found.recall is None else _ends(found.recall, 4),
        "found": found.found,
        "unmasked_found": found.unmasked_found,
    }


def _ends(interval: Interval, digits: int = 3) -> list[float]:
    return [round(interval.low, digits), round(interval.high, digits)]


def _shown(name: str, direct: Unmasked, basis: str) -> str:
    rate = direct.per_thousand
    ends = f"[{rate.low:.1f}, {rate.high:.1f}]"
    return f"{name}: {rate.value:.1f} {ends} unmasked direct identifiers per 1,000 lines; {basis}"


COMMAND = StageCommand(
    name="unmasked", stage=unmasked, settings=Settings, files=UnmaskedFiles, section={}, labels=("dataset",), seed=None
)
