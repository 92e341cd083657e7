"""A twin of a cell's language model: trained in the same way, on its text less some lines and plus canaries.

The neighbours of the lines left out stay, so that members and non-members differ in membership only. The canaries are
masked and filled as the text was. A model trained in the same way leaks sentences of the same kind as the twin does.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tasks.audit.attacked import AttackedModel, AttackedText, Shadow
from tasks.audit.canaries import FAMILIES, Canaries, Canary, Family, make_canaries
from tasks.audit.figure import Figure
from tasks.audit.filler_exposure import filler_exposure
from tasks.audit.line_scores import score_lines
from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.text_lines import read_lines, write_lines
from tasks.errors import CorpusError
from tasks.filling.filled_lines import Part
from tasks.filling.fillers.tune_filler import TuneFiles
from tasks.filling.methods.distilled import Distilled
from tasks.filling.prepared_fill import MaskedLines, PlantedLines, mask_lines
from tasks.language_model.adapt import AdaptFiles, adapt
from tasks.language_model.divided_model import DividedModel
from tasks.language_model.evaluation.perplexity import word_ranks
from tasks.parameters.cells_file import MARKER_USES
from tasks.records.cell import Cell
from tasks.settings.resources import ResourceSettings

_SEED_BRANCH, _SHADOW_BRANCH = 0x617564, 0x736861
"""Separate the coins of lines from other draws of the same seed."""


@dataclass(frozen=True)
class TwinText:
    """The text that a twin is trained on, and the lines and canaries that it is tested on."""

    text: Sequence[str]
    """The cell's text: a line for each private line, in one copy or several, one after the other."""
    documents: Sequence[str]
    """Document of each private line (L,)."""
    is_member: np.ndarray
    """Whether the twin is trained on each private line (L,), bool."""
    planted: Sequence[tuple[str, str]]
    """Canaries as written in the text, each with its own document; repeated as in the text."""
    seed: int

    def of(self, is_member: np.ndarray) -> list[tuple[str, str]]:
        """Training lines, each with its document: the lines of these members (L,) in order, and each canary at a place
        of its own."""
        number = len(self.documents)
        members = [
            (line, f"document {self.documents[place % number]}")
            for place, line in enumerate(self.text)
            if is_member[place % number]
        ]
        order = random.Random(f"{self.seed} places")
        placed = [*enumerate(members), *((order.random() * len(members), pair) for pair in self.planted)]
        return [pair for _, pair in sorted(placed, key=lambda each: each[0])]

    def shadows(self, models: int, held_out_share: float) -> np.ndarray:
        """Members (S, L) of so many other draws, bool; each line is left out by equally many of them, at least two."""
        out = min(models - 2, max(2, round(models * held_out_share)))
        drawn = np.random.default_rng([self.seed, _SHADOW_BRANCH]).random((models, len(self.documents)))
        return drawn.argsort(axis=0).argsort(axis=0) >= out


@dataclass(frozen=True)
class Twin:
    """Trains the twin of a cell's model in a private folder."""

    attacked: AttackedText
    members: Sequence[str]
    """Private lines (L)."""
    documents: Sequence[str]
    """Document of each private line (L)."""
    work: Path

    def trained(self) -> tuple[AttackedModel, Mapping[Family, float | None], dict[str, Figure]]:
        """The twin, the share of the drawn words of each family that was masked, and the figures of a twin of the
        filler. Raises ``CorpusError`` if the text has another number of lines than the private text."""
        settings, files, members = self.attacked.settings, self.attacked.files, self.members
        cell, threads = self.attacked.cell, self.attacked.resources.threads
        canaries = make_canaries(
            word_ranks(str(files.word_counts)),
            max(2, min(settings.canaries, len(members) // 200)),
            settings.repetitions,
            settings.references,
            min(settings.coins, len(members) // 8),
            settings.seed,
        )
        is_drawn = isinstance(settings.filling, Distilled)
        # A drawn text has other lines: train on its source, the masked lines.
        text = list(read_lines(self._masked / "text.txt" if is_drawn else str(files.text)))
        if not members or len(text) % len(members):
            raise CorpusError(
                f"the text has {len(text):,} lines, and the private text {len(members):,}: they do not match line by "
                "line; give the private text that it was made from as --members"
            )
        drawn = np.random.default_rng([settings.seed, _SEED_BRANCH]).random(len(members))
        planted = [canary for canary in canaries.planted for _ in range(canary.repetitions)]
        sentences = [canary.text for canary in planted]
        masked = MaskedLines(sentences, [[] for _ in sentences])
        if cell.technique is not None:
            masked = mask_lines(settings.techniques[cell.technique], sentences, files.word_counts, threads)
        lines = self._filled(masked, [f"canary {sentence}" for sentence in sentences])
        named = [(line, f"canary {sentence}") for line, sentence in zip(lines, sentences, strict=True)]
        own = TwinText(text, self.documents, drawn >= settings.held_out_share, named, settings.seed)
        of_filler = self._of_filler(canaries, masked.lines)
        trained_on = own.of(own.is_member)
        if is_drawn:
            trained_on = self._drawn(trained_on, canaries)
        base = DividedModel(str(files.base), self.attacked.resources)
        model = AttackedModel(
            model=self._adapted("twin", trained_on, cell),
            lines=members,
            is_member=own.is_member,
            documents=self.documents,
            settings=settings,
            threads=threads,
            base=base,
            before=score_lines(base, members),
            shadows=() if is_drawn else tuple(self._shadows(own)),
            canaries=canaries,
            planted=list(dict.fromkeys(lines)),
            text=text if cell.technique else None,
            public=files.generic_text,
        )
        return model, _masked_shares(planted, masked.spans), of_filler

    @property
    def _masked(self) -> Path:
        """Folder of the masked text."""
        return Path(str(self.attacked.files.masked)) / str(self.attacked.cell.technique)

    @property
    def _resources(self) -> ResourceSettings:
        return self.attacked.resources.model_copy(update={"work_folder": str(self.work)})

    def _filled(self, masked: MaskedLines, names: list[str]) -> Sequence[str]:
        """Lines filled as the cell's text was; a repeated line may be filled differently."""
        method = self.attacked.settings.filling
        if self.attacked.cell.technique is None or method is None or isinstance(method, Distilled):
            return masked.lines
        planted = PlantedLines(masked.lines, masked.spans, names, self.attacked.files.documents)
        # Lines after the corpus, each its own document.
        first = 1 + sum(1 for _ in read_lines(self._masked / "text.txt"))
        documents = [f"canary {number}" for number in range(len(names))]
        part = Part(first, masked.lines, masked.spans, documents)
        return self.attacked.with_planted(planted).fill(part)

    def _of_filler(self, canaries: Canaries, planted: Sequence[str]) -> dict[str, Figure]:
        """The leakage of a twin of the filler; empty if the filler was not tuned on the corpus."""
        settings, files = self.attacked.settings, self.attacked.files
        if settings.tuning is None or self.attacked.cell.technique is None:
            return {}
        given = TuneFiles(
            base=str(settings.tuning.base),
            input=str(self.work / "masked.txt"),
            output=str(self.work / "filler"),
            allowed_words=str(self._masked / "allowed_words.txt"),
            word_counts=files.word_counts,
            generic=files.generic,
        )
        text = list(read_lines(self._masked / "text.txt"))
        return filler_exposure(settings.tuning, given, text, planted, canaries, settings, self._resources)

    def _shadows(self, own: TwinText) -> Iterator[Shadow]:
        """Models trained as the twin, with other members and another seed."""
        settings, cell = self.attacked.settings, self.attacked.cell
        if not settings.shadow_models or (settings.shadowed is not None and cell.path not in settings.shadowed):
            return
        for number, is_member in enumerate(own.shadows(settings.shadow_models, settings.held_out_share), start=1):
            other = replace(cell, seed=1000 * settings.seed + number)
            shadow = self._adapted("shadow", own.of(is_member), other)
            yield Shadow(score_lines(shadow, self.members).means, is_member)

    def _drawn(self, masked: Sequence[tuple[str, str]], canaries: Canaries) -> list[tuple[str, str]]:
        """Text sampled from a model of masked lines, each line a document; it must not quote the members' lines or the
        canaries."""
        from tasks.distillation.distil import DistilFiles, distil

        method, cell = self.attacked.settings.filling, self.attacked.cell
        assert isinstance(method, Distilled), "the caller checks this"
        folders = {"pretrained": str(self.attacked.files.base)}
        for source in method.sources.values():
            if source not in folders:
                self._adapted(source, masked, replace(cell, method=source))
                folders[source] = str(self.work / source)
        private, output = self.work / "private.txt", self.work / "drawn.txt"
        planted = [canary.text for canary in canaries.planted]
        write_lines(private, [*self.members[: len(masked) - len(planted)], *planted], private=True)
        named = {option.replace("-", "_"): folders[found] for option, found in method.sources.items()}
        files = DistilFiles(private=str(private), output=str(output), **named)
        distil(method, files, cell, self.attacked.resources)
        return [(line, f"line {number}") for number, line in enumerate(read_lines(output))]

    def _adapted(self, name: str, pairs: Sequence[tuple[str, str]], cell: Cell) -> DividedModel:
        """The cell's model, trained on other lines, each with its document."""
        given, adaptation = self.attacked.files, self.attacked.settings.adaptation
        assert adaptation is not None, "an attack on a twin needs its adaptation settings"
        text, documents, output = (self.work / part for part in ("text.txt", "documents.txt", name))
        write_lines(text, [line for line, _ in pairs], private=True)
        write_lines(documents, [name for _, name in pairs], private=True)
        files = AdaptFiles(
            model=str(given.base),
            input=str(text),
            valid=given.valid if adaptation.goes_by_valid else None,
            documents=str(documents),
            markers=MARKER_USES.get(str(cell.method), "none"),
            output=str(output),
        )
        adapt(adaptation, files, cell, self._resources)
        return DividedModel(str(output), self.attacked.resources)


def _masked_shares(planted: Sequence[Canary], spans: Sequence[Sequence[MaskedSpan]]) -> dict[Family, float | None]:
    """Share of the drawn words of each family that was masked; ``None`` if none was planted."""
    found: dict[Family, list[bool]] = {family: [] for family in FAMILIES}
    for canary, of_line in zip(planted, spans, strict=True):
        hidden = {span.start for span in of_line}
        found[canary.family] += [place in hidden for place in canary.drawn]
    return {family: sum(hits) / len(hits) if hits else None for family, hits in found.items()}
