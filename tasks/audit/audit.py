"""Attack a text, and the language model trained on it, to measure how much private text they reveal.

- --text is compared with the private text that it was made from (--members).
- With --held-out, the text may be of any program and any number of lines. A coin must have left these
  lines out before the text was made. An exact test then shows whether the text discloses the others.
- --model is asked which lines it was trained on. Such lines are more probable to it than other
  lines of the same sort (--non-members).

Texts and models of any origin can be attacked. Compare each figure with the result of the same
attack where there is nothing to find, called blind. A figure is as good as its attacker: a better
attacker finds more.

In an experiment, the attacked model is a twin of the cell's model. It is trained from --base in the
same way, with two differences. Some lines are left out, and are the non-members. Canaries are
added: made-up sentences that were masked and filled as the text was. The twin needs --params,
--text and --word-counts.

examples:
  palimpsest audit --members mail.txt --text released.txt
  palimpsest audit --members mail.txt --held-out left_out.txt --text released.txt
  palimpsest audit --members mail.txt --non-members other_mail.txt --model models/adapted --base models/pretrained
  palimpsest audit --members mail.txt --non-members other_mail.txt --model gpt2
"""

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tasks.audit.attacked import AttackedModel, AttackedText, AttackSettings, AuditFiles
from tasks.audit.settings import AuditSettings
from tasks.command import Invocation, StageCommand
from tasks.corpora.text_lines import read_corpus, read_documents
from tasks.corpora.words import lines_found
from tasks.errors import CorpusError, ParameterError
from tasks.files.atomic_file import private_work_folder
from tasks.language_model.settings import AdaptSettings
from tasks.records.cell import Cell
from tasks.records.cells import is_filled
from tasks.records.stage_report import Report
from tasks.settings.overrides import of_kind
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.audit.figure import Figure

SUMMARY = "attack a text and a language model, to measure how much private text leaks"
DEFAULT_WORK_FOLDER = ".palimpsest/audits"
_FEWEST_OTHERS = 10
"""Fewer non-members that are not members too are refused."""


def audit(settings: AttackSettings, files: AuditFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Attack the text, the model, or both.

    Raises ``CorpusError`` if texts do not match, ``ModelError`` if a model cannot be read.
    """
    from tasks.audit.attacks import figures_of
    from tasks.audit.figure import fields_of
    from tasks.audit.held_out import held_out_figures
    from tasks.torch_setup import set_up_installed_torch

    set_up_installed_torch(resources.threads)
    members, documents = _lines(files)
    report, text = Report(), AttackedText(settings, files, cell, resources)
    figures: dict[str, Figure] = {}
    if files.held_out:
        others = _lines(AuditFiles(members=files.held_out))
        lines = read_corpus(str(files.text))
        figures = held_out_figures((members, documents), others, lines, settings.confidence, settings.seed)
    elif files.text:
        figures = figures_of(text)
    with private_work_folder(resources.work_folder or DEFAULT_WORK_FOLDER) as work:
        if files.model and files.non_members:
            figures |= figures_of(_given_model(settings, files, members, documents, resources, report))
        elif settings.adaptation is not None:
            from tasks.audit.twin import Twin

            twin, masked_shares, of_filler = Twin(text, members, documents, work).trained()
            figures |= of_filler | figures_of(twin)
            report.measure(canaries_masked=masked_shares)
    report.shown = "\n".join(_shown(name, figure) for name, figure in figures.items())
    return report.measure(**fields_of(figures), attackers={name: figure.attacker for name, figure in figures.items()})


def _lines(files: AuditFiles) -> tuple[list[str], list[str]]:
    """The private lines and the document of each; without documents each line is its own."""
    lines = read_corpus(files.private_text)
    documents = list(read_documents(files.documents)) if files.documents else list(map(str, range(len(lines))))
    if len(documents) != len(lines):
        raise CorpusError(
            f"{files.documents!r} has {len(documents):,} lines, and {files.private_text!r} {len(lines):,}; give a "
            "corpus as 'palimpsest corpora' writes it"
        )
    return lines, documents


def _given_model(
    settings: AttackSettings,
    files: AuditFiles,
    members: list[str],
    documents: list[str],
    resources: ResourceSettings,
    report: Report,
) -> AttackedModel:
    import numpy as np

    from tasks.audit.line_scores import score_lines
    from tasks.language_model.divided_model import DividedModel

    given = read_corpus(str(files.non_members))
    others = [line for line, shared in zip(given, lines_found(given, members), strict=True) if not shared]
    if shared := len(given) - len(others):
        said = f"{shared:,} of {len(given):,} lines of --non-members {files.non_members!r} are in --members too"
        if len(others) < _FEWEST_OTHERS:
            raise CorpusError(f"{said}, so fewer than {_FEWEST_OTHERS} others are left; give lines unseen in training")
        report.warn(f"{said}; they are left out of the non-members")
    lines, base = [*members, *others], DividedModel(files.base, resources) if files.base else None
    return AttackedModel(
        model=DividedModel(str(files.model), resources),
        lines=lines,
        is_member=np.repeat([True, False], [len(members), len(others)]),
        # The documents of non-members are unknown.
        documents=[*(f"member {name}" for name in documents), *(f"other {number}" for number in range(len(others)))],
        settings=settings,
        threads=resources.threads,
        base=base,
        before=score_lines(base, lines) if base is not None else None,
        public=files.generic_text,
    )


def _shown(name: str, figure: "Figure") -> str:
    if figure.value is None:
        return f"{name}: none"
    value = f"{figure.value:.3f}" if figure.value == 0 or figure.value >= 0.001 else f"{figure.value:.1e}"
    interval = " [{:.3f}, {:.3f}]".format(*figure.interval) if figure.interval else ""
    blind = f", blind {figure.blind:.3f}" if figure.blind is not None else ""
    return f"{name}: {value}{interval}{blind}; {figure.attacker}"


@dataclass(frozen=True)
class AuditCommand(StageCommand[AttackSettings, AuditFiles]):
    """The stage; it needs to know how a cell was masked, filled and adapted."""

    def parse(self, arguments: argparse.Namespace) -> Invocation[AttackSettings, AuditFiles]:
        """The attack that the options ask for; ``ParameterError`` if nothing is to be attacked or files are missing."""
        found = super().parse(arguments)
        files, cell, params = found.files, found.cell, found.params
        if files.model and not files.non_members:
            raise ParameterError("--model needs --non-members: lines of the same sort that it was not trained on")
        trains_twin = files.base is not None and files.model is None
        if files.held_out and (trains_twin or not files.text):
            raise ParameterError(
                "--held-out needs --text, and trains no twin; give --text, and --base only with --model"
            )
        if not (files.text or files.model):
            raise ParameterError("nothing to attack: give --text, or --model with --non-members")
        if trains_twin and not (params and files.text and files.word_counts):
            raise ParameterError(
                "--base without --model trains a twin, which needs --params, --text and --word-counts; give them, or "
                "the model to attack as --model"
            )
        if not params:
            return replace(found, settings=AttackSettings(**found.settings.model_dump(exclude_unset=True)))
        from tasks.parameters.cells_file import base_folder
        from tasks.parameters.parameter_file import read_sections

        own = [f"filling.{cell.method}"] if is_filled(cell) else []
        sections = ["masking", "language_model", "compare.private", "tuned_fillers", *own]
        read = read_sections(params, sections)
        made: dict[str, Any] = {"techniques": read["masking"], "filling": read.get(f"filling.{cell.method}")}
        used = ["audit", "masking", *own]
        if trains_twin:
            said = read["language_model"].model_dump(mode="json", exclude_unset=True)
            private = read["compare.private"].get(cell.method)
            if private is not None:
                said["adaptation"]["private"] = private.model_dump(mode="json", exclude_unset=True)
                used.append("compare.private")
            tuning = read["tuned_fillers"].get(cell.filler)
            if tuning is not None and files.filler:
                base = base_folder(files.filler, str(tuning.base), read["tuned_fillers"])
                made["tuning"] = tuning.model_copy(update={"base": base})
                used.append(f"tuned_fillers.{cell.filler}")
            made["adaptation"] = of_kind(said, [], AdaptSettings)
            used += [f"language_model.{part}" for part in ("adaptation", "kind", said["kind"])]
        settings = AttackSettings.model_validate({**found.settings.model_dump(exclude_unset=True), **made})
        return replace(found, settings=settings, sections=used)


COMMAND = AuditCommand(
    name="audit",
    stage=audit,
    settings=AuditSettings,
    files=AuditFiles,
    section="audit",
    cell=("technique", "method", "seed"),
    labels=("dataset", "filler"),
    seed=None,
)
