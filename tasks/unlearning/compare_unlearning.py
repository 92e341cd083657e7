"""Compare methods that make a language model forget: what remains, what it costs, what comes back.

The command plants secrets into a corpus. The secrets and some lines of the corpus are to be
forgotten. Two models are trained for this:

- One is trained on everything, and must forget.
- The other is retrained on the rest alone. No method can do better, and with a small model none is
  cheaper.

The parameter file names the methods (compare.unlearned). Each method goes as far as a budget of
perplexity on valid text allows. Then the command measures how much the model still knows of the
secrets and lines. It measures this again after attacks. The report has every strength that was
tried.

All models and texts are private, and are deleted at the end. The report has numbers only.

example:
  palimpsest compare-unlearning --params params.yaml --cell dataset=chat --base models/pretrained \\
    --corpus data/private/corpora/chat --masked data/private/masked/chat/train/allow_list \\
    --word-counts data/word_counts.tsv --report results/reports/unlearning/chat-1.json
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tasks.audit.audit import DEFAULT_WORK_FOLDER
from tasks.command import Invocation, StageCommand, StageFiles
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_corpus, read_documents, read_lines, write_lines
from tasks.errors import ParameterError
from tasks.files.atomic_file import private_work_folder
from tasks.filling.fill_files import CorpusFiles
from tasks.filling.methods import AnyMethod
from tasks.filling.prepared_fill import prepare_like_corpus
from tasks.language_model.opening import open_learner
from tasks.language_model.settings import AdaptSettings
from tasks.options import READ, READ_MODEL
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.overrides import of_kind
from tasks.settings.resources import ResourceSettings
from tasks.unlearning.method import Request
from tasks.unlearning.settings import UnlearningSettings

if TYPE_CHECKING:
    from tasks.language_model.learners import Learner
    from tasks.unlearning.trial import PrivateLine

SUMMARY = "compare methods that make a language model forget: what remains, and what it costs"
STAGE = "compare-unlearning"


class ComparedFiles(StageFiles):
    """A corpus and the model before it was adapted."""

    corpus: Annotated[str, READ]
    """folder of the private corpus, with train.txt, valid.txt and test.txt"""
    masked: Annotated[str, READ]
    """folder of its masked train.txt, with text.txt, allowed_words.txt and sidecar.jsonl"""
    base: Annotated[str, READ_MODEL]
    """language model before adaptation"""
    word_counts: Annotated[str, READ]
    """word counts of generic text; the secrets are made of its words"""


class ComparedSettings(UnlearningSettings):
    """The section ``unlearning``, with the settings of adaptation and of filling private words."""

    filling: AnyMethod = Field(exclude=True)
    adaptation: AdaptSettings = Field(exclude=True)


def compare_unlearning(
    settings: ComparedSettings, files: ComparedFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Measure all methods.

    Raises ``CorpusError`` where the corpus is too small, and ``ModelError`` where the model is of another kind.
    """
    from tasks.language_model.adapt import AdaptFiles, adapt
    from tasks.language_model.evaluation.perplexity import word_ranks
    from tasks.torch_setup import set_up_torch
    from tasks.unlearning.comparison import Comparison
    from tasks.unlearning.trial import Trial

    set_up_torch(resources.threads)
    seed, corpus, masked = cell.seed or 0, Path(files.corpus), Path(files.masked)
    trial = Trial.drawn(list(_lines(files, settings)), word_ranks(files.word_counts), settings, seed)
    with_counts = CorpusFiles(word_counts=files.word_counts)
    prepared = prepare_like_corpus(settings.filling, masked, with_counts, cell, with_counts.opened(resources.threads))
    lines = [line.raw for line in trial.forgotten]
    with private_work_folder(resources.work_folder or DEFAULT_WORK_FOLDER) as work:

        def adapted(name: str, forgotten: Sequence[str]) -> "tuple[Learner, float]":
            """Adapt a model as the experiment does; returns it and the processor seconds."""
            text, folder = work / f"{name}.txt", str(work / name)
            write_lines(text, [*trial.retained, *forgotten], private=True)
            given = AdaptFiles(model=files.base, input=str(text), valid=str(corpus / "valid.txt"), output=folder)
            begun = time.process_time()
            adapt(settings.adaptation, given, cell, resources.model_copy(update={"work_folder": str(work)}))
            return open_learner(folder), time.process_time() - begun

        start, _ = adapted("start", lines)
        retrained, seconds = adapted("retrained", [])
        base = open_learner(files.base, "--base")
        corpus_lines = sum(1 for _ in read_lines(masked / "text.txt"))
        request = Request(
            start=start,
            base=base,
            forget=base.encode(lines),
            retain=base.encode(trial.retained),
            refilled=base.encode(trial.refilled(prepared, corpus_lines, settings.copies)),
            seed=seed,
        )
        valid, test = (base.encode(read_corpus(str(corpus / f"{part}.txt"))) for part in ("valid", "test"))
        found = dict(Comparison(trial, settings, request, valid, test).rows(retrained, seconds))
    shown = "\n".join(_shown(name, row) for name, row in found.items())
    return Report(seed=cell.seed, shown=shown).measure(by_method=found)


def _lines(files: ComparedFiles, settings: UnlearningSettings) -> "Iterator[PrivateLine]":
    """Lines of the corpus, with their masked form and spans."""
    from tasks.unlearning.trial import PrivateLine

    corpus, masked = Path(files.corpus), Path(files.masked)
    raw, text = read_corpus(str(corpus / "train.txt")), read_lines(masked / "text.txt")
    by_document = settings.unit == "document"
    documents = read_documents(str(corpus / "train.documents")) if by_document else repeat("", len(raw))
    for parts in zip(raw, text, read_sidecar(masked / "sidecar.jsonl"), documents, strict=True):
        yield PrivateLine(*parts)


def _shown(name: str, row: dict[str, Any]) -> str:
    bits = [f"{row[key]:.1f}" for key in row if key.startswith("exposure_") and not key.endswith("_ci")]
    share = row.get("share_of_retraining")
    return (
        f"{name}: perplexity {row['perplexity']:.1f}, exposure {'/'.join(bits)} bits, membership "
        f"{row['membership']:.3f}" + (f", {share:.0%} of retraining" if share is not None else "")
    )


@dataclass(frozen=True)
class CompareUnlearningCommand(StageCommand[ComparedSettings, ComparedFiles]):
    """The stage, with the settings of adaptation and filling from the parameter file."""

    def parse(self, arguments: argparse.Namespace) -> Invocation[ComparedSettings, ComparedFiles]:
        """The settings and files of the options; raises ``ParameterError`` without a parameter file."""
        from tasks.parameters.parameter_file import read_sections

        found = super().parse(arguments)
        if not found.params:
            raise ParameterError("methods and models come from an experiment; give --params with its file")
        own = found.settings
        sections = ["compare.unlearned", f"filling.{own.fill}", "language_model"]
        read = read_sections(found.params, sections)
        adaptation = of_kind(read["language_model"].model_dump(mode="json", exclude_unset=True), [], AdaptSettings)
        methods = {name: own.methods[name] for name in read["compare.unlearned"]}
        made = {"methods": methods, "filling": read[f"filling.{own.fill}"], "adaptation": adaptation}
        settings = ComparedSettings.model_validate({**own.model_dump(exclude_unset=True), **made})
        kind = settings.adaptation.kind
        used = [*sections[:2], *(f"language_model.{part}" for part in ("adaptation", "kind", kind)), *found.sections]
        return replace(found, settings=settings, sections=used)


COMMAND = CompareUnlearningCommand(
    name=STAGE,
    stage=compare_unlearning,
    settings=UnlearningSettings,
    files=ComparedFiles,
    section="unlearning",
    cell=("seed",),
    labels=("dataset",),
)
