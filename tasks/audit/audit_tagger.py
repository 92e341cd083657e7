"""Attack a tagger that learned from private text, to measure how much of the text it reveals.

--labelled is the folder that the tagger was trained on: it learned from train.jsonl, and not from
test.jsonl. Both need lines of the same sort, divided by chance.

- membership: do the labels' probabilities show which lines the tagger learned from?
- names: do sentences with a name show whether the name is one of the training text?
- names_read: which names of the training text can be read as words in the tagger's files?

--base is a tagger that did not learn from this text. Compare each figure with its blind value, which
is the base's. A better attacker finds more.

--output is a copy of the tagger to share. Its file audit.json has the figures. It is not written if
the upper end of a figure's interval is above its limit in at_most, or if a limited figure is undefined.

examples:
  palimpsest audit-tagger --tagger models/taggers/own --labelled labelled
  palimpsest audit-tagger --tagger models/taggers/own --labelled labelled --output shared/own
"""

import shutil
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from tasks.audit.figure import Figure, fields_of
from tasks.command import StageCommand, StageFiles
from tasks.errors import CorpusError, ParameterError
from tasks.files.atomic_file import atomic_folder
from tasks.masking.settings import TaggerSettings
from tasks.masking.taggers.tagger_folder import AUDIT_FILE, check_tagger_folder, tagger_settings, write_audit_record
from tasks.options import READ, READ_MODEL, WRITE_FOLDER
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.results.grid import ABSENT, markdown, plain_grid
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings

SUMMARY = "attack a trained tagger, to measure how much of its text it reveals"
_FEWEST_OTHERS = 10
"""Fewer lines of test.jsonl that are not in train.jsonl too are refused."""


class TaggerAuditSettings(Settings):
    """Limits of a tagger that may be shared."""

    at_most: dict[str, float] = Field(default={"membership_tpr_1": 0.05, "names_read": 0.05})
    """Highest value of each figure; the upper end of its interval counts."""


class AuditTaggerFiles(StageFiles):
    """The attacked tagger, and the text that it learned from."""

    tagger: Annotated[str, READ]
    """folder of the tagger, as 'palimpsest train-tagger' writes it"""
    labelled: Annotated[str, READ]
    """folder with train.jsonl, which the tagger learned from, and test.jsonl"""
    base: Annotated[str | None, READ_MODEL] = None
    """tagger of any kind that did not learn from the text (default: the shipped one of the same kind)"""
    output: Annotated[str | None, WRITE_FOLDER] = None
    """folder for a copy of the tagger to share, with the results of the attacks"""


def audit_tagger(
    settings: TaggerAuditSettings, files: AuditTaggerFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Attack a tagger, and write the copy to share.

    Raises ``CorpusError`` for too few held-out lines, ``ModelError`` for an unreadable tagger, ``ParameterError`` for a
    copy above the limits.
    """
    from tasks.audit.attacks import figures_of
    from tasks.audit.tagger_attacks import AttackedTagger, folder_of
    from tasks.labelled_text.labelled_lines import read_labelled
    from tasks.masking.taggers.entity_tagger import load_tagger

    report = Report()
    members, held_out = (list(read_labelled(Path(files.labelled) / f"{part}.jsonl")) for part in ("train", "test"))
    learned = {line.text for line in members}
    others = [line for line in held_out if line.text not in learned]
    if both := len(held_out) - len(others):
        report.warn(f"{both:,} lines of test.jsonl are in train.jsonl too, and are left out")
    if len(others) < _FEWEST_OTHERS:
        raise CorpusError(
            f"{files.labelled!r}: test.jsonl has {len(others):,} lines that are not in train.jsonl, and the attack "
            f"needs {_FEWEST_OTHERS}; train a tagger without more of the lines"
        )
    read = TypeAdapter[TaggerSettings](TaggerSettings).validate_python
    own = read(tagger_settings(files.tagger))
    base = read(tagger_settings(files.base) if files.base else {"kind": own.kind})
    loaded = [load_tagger(each, resources.threads) for each in (own, base)]
    folders = folder_of(files.tagger), folder_of(getattr(base, "model", ""))
    figures = figures_of(AttackedTagger(loaded[0], loaded[1], folders, members, others))
    report.shown = _shown(figures)
    report.measure(**fields_of(figures), members=len(members), non_members=len(others))
    report.measure(attackers={name: figure.attacker for name, figure in figures.items()})
    if files.output:
        _refuse_above(figures, settings.at_most, report.shown)
        check_tagger_folder(files.output, "copy of a tagger", AUDIT_FILE)
        with atomic_folder(files.output) as fresh:
            shutil.copytree(files.tagger, fresh, dirs_exist_ok=True)
            write_audit_record(fresh, len(members), report.measured)
    return report


def _refuse_above(figures: dict[str, Figure], limits: dict[str, float], shown: str) -> None:
    for name, limit in limits.items():
        if name not in figures:
            raise ParameterError(f"at_most.{name}: no attack has this figure; known: {', '.join(figures)}")
        value, interval = figures[name].value, figures[name].interval
        if value is None:
            problem = "is undefined. Hold more lines out of the training"
        elif (most := max(value, *(interval or ()))) > limit:
            problem = f"is at most {most:.3f}, and the limit is {limit:g}. Train with fewer epochs, or on more lines"
        else:
            continue
        raise ParameterError(f"No copy to share is written: {name} {problem}, or change at_most.\n{shown}")


def _shown(figures: dict[str, Figure]) -> str:
    def number(value: float | None) -> str:
        return ABSENT if value is None else f"{value:.3f}"

    rows = [
        [name, number(one.value), ", ".join(map(number, one.interval or ())), number(one.blind), f"{one.places:,}"]
        for name, one in figures.items()
    ]
    return markdown(plain_grid("", ["figure", "value", "interval", "blind", "places"], rows))


COMMAND = StageCommand("audit_tagger", audit_tagger, TaggerAuditSettings, AuditTaggerFiles, section={})
