"""What a cell's language model gives away of its text, as far as a twin of it does: trained, attacked, thrown away."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.audit.attacked import AttackSettings, AuditFiles
from tasks.audit.canaries import Canaries, Family, make_canaries
from tasks.audit.extraction import extraction
from tasks.audit.figure import Figure
from tasks.audit.line_scores import score_lines
from tasks.audit.model_attacks import Shadow, canary_figures, membership_of, neighbourhood_of
from tasks.audit.twin import Obfuscate, Obfuscated, TwinText, twin_text
from tasks.corpora.text_lines import read_lines, write_lines
from tasks.filling.beside_corpus import PlantedLines, context_beside, mask_beside
from tasks.filling.filled_corpus import Shard
from tasks.filling.fillers.tune_filler import TuneFiles
from tasks.filling.methods.distilled import Distilled
from tasks.language_model.adapt import AdaptFiles, adapt
from tasks.language_model.divided_model import DividedModel
from tasks.language_model.evaluation.perplexity import word_ranks
from tasks.parameters.cells_file import MARKER_USES
from tasks.records.cell import Cell
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.filling.context import FillContext


@dataclass(frozen=True)
class TwinAttack:
    """What a twin is made of, and where."""

    settings: AttackSettings
    files: AuditFiles
    cell: Cell
    resources: ResourceSettings
    members: Sequence[str]
    """The private lines (L)."""
    documents: Sequence[str]
    """Of each of them."""
    work: Path
    """A private folder."""
    contexts: "Sequence[FillContext]"
    """Of fills of the text that were made before: what they learned need not be learned again."""

    def figures(self) -> tuple[dict[str, Figure], Mapping[Family, float | None]]:
        """What all attacks find; and the share of each family's words that was masked."""
        settings, members, documents = self.settings, self.members, self.documents
        canaries = make_canaries(
            word_ranks(str(self.files.word_counts)),
            max(2, min(settings.canaries, len(members) // 200)),
            settings.repetitions,
            settings.references,
            min(settings.coins, len(members) // 8),
            settings.seed,
        )
        text = list(read_lines(str(self.files.text)))
        drawn = isinstance(settings.filling, Distilled)
        if drawn:
            # What it is drawn from is trained on: each masked line, and no line of the text is one of these.
            text = list(read_lines(Path(str(self.files.masked)) / str(self.cell.technique) / "text.txt"))
        own = twin_text(members, documents, text, canaries, self._obfuscation(), settings.held_out_share, settings.seed)
        found = self._of_filler(canaries)
        base = DividedModel(str(self.files.base), self.resources)
        trained_on = own.of(own.is_member)
        if drawn:
            trained_on = self._drawn(trained_on, canaries)
        attacked = self._trained("twin", trained_on, self.cell)
        figures = found | canary_figures(attacked, base, canaries, settings)
        shadows = [] if drawn else list(self._shadows(own))
        before = score_lines(base, members)
        figures |= membership_of(attacked, before, members, own.is_member, documents, settings, shadows)
        if settings.neighboured:
            threads = self.resources.threads
            figures |= neighbourhood_of(attacked, members, own.is_member, documents, settings, threads)
        if settings.sampled:
            figures |= extraction(
                attacked,
                members,
                own.is_member,
                documents,
                settings,
                public=read_lines(self.files.generic_text) if self.files.generic_text else (),
                text=text if self.cell.technique else None,
                planted=dict(own.planted),
                canaries=canaries,
            )
        return figures, own.masked_shares

    def _of_filler(self, canaries: Canaries) -> dict[str, Figure]:
        """What a twin of the filler gives away, where that was tuned on the corpus."""
        from tasks.audit.filler_exposure import filler_exposure

        settings, files, technique = self.settings, self.files, self.cell.technique
        if settings.tuning is None or technique is None:
            return {}
        folder = Path(str(files.masked)) / technique
        given = TuneFiles(
            base=str(settings.tuning.base),
            input=str(self.work / "masked.txt"),
            output=str(self.work / "filler"),
            kept_words=str(folder / "kept_words.txt"),
            word_counts=files.word_counts,
            generic=files.generic,
        )
        planted = [canary.text for canary in canaries.planted for _ in range(canary.repetitions)]
        masked = mask_beside(settings.techniques[technique], planted, files.word_counts, self.resources.threads).lines
        resources = self.resources.model_copy(update={"work_folder": str(self.work)})
        text = list(read_lines(folder / "text.txt"))
        return filler_exposure(settings.tuning, given, text, masked, canaries, settings, resources)

    def _shadows(self, own: TwinText) -> Iterator[Shadow]:
        """Models as the twin, of other members and with other chance in their training."""
        settings = self.settings
        if not settings.shadow_models or (settings.shadowed is not None and self.cell.path not in settings.shadowed):
            return
        for number, is_member in enumerate(own.shadows(settings.shadow_models, settings.held_out_share), start=1):
            other = replace(self.cell, seed=1000 * settings.seed + number)
            shadow = self._trained("shadow", own.of(is_member), other)
            yield Shadow(score_lines(shadow, self.members).means, is_member)

    def _drawn(self, masked: Sequence[tuple[str, str]], canaries: Canaries) -> list[tuple[str, str]]:
        """Text that a model of masked lines writes, each line a document; what it must not quote are the members' lines
        and the canaries."""
        from tasks.distillation.distil import DistilFiles, distil

        assert isinstance(self.settings.filling, Distilled), "who asks has looked"
        folders = {"pretrained": str(self.files.base)}
        for source in self.settings.filling.sources.values():
            if source not in folders:
                self._trained(source, masked, replace(self.cell, method=source))
                folders[source] = str(self.work / source)
        private, output = self.work / "private.txt", self.work / "drawn.txt"
        planted = [canary.text for canary in canaries.planted]
        write_lines(private, [*self.members[: len(masked) - len(planted)], *planted], private=True)
        named = {option.replace("-", "_"): folders[found] for option, found in self.settings.filling.sources.items()}
        distil(
            self.settings.filling,
            DistilFiles(private=str(private), output=str(output), **named),
            self.cell,
            self.resources,
        )
        return [(line, f"line {number}") for number, line in enumerate(read_lines(output))]

    def _trained(self, name: str, pairs: Sequence[tuple[str, str]], cell: Cell) -> DividedModel:
        """The model of the cell, trained on other lines, each with its document."""
        adaptation = self.settings.adaptation
        assert adaptation is not None, "whoever attacks a twin says how it is trained"
        text, documents, output = (self.work / part for part in ("text.txt", "documents.txt", name))
        write_lines(text, [line for line, _ in pairs], private=True)
        write_lines(documents, [name for _, name in pairs], private=True)
        files = AdaptFiles(
            model=str(self.files.base),
            input=str(text),
            valid=self.files.valid if adaptation.goes_by_valid else None,
            documents=str(documents),
            markers=MARKER_USES.get(str(cell.method), "none"),
            output=str(output),
        )
        adapt(adaptation, files, cell, self.resources.model_copy(update={"work_folder": str(self.work)}))
        return DividedModel(str(output), self.resources)

    def _obfuscation(self) -> Obfuscate:
        """Masking and filling as the cell's text was."""
        settings, files, cell, threads = self.settings, self.files, self.cell, self.resources.threads
        method = settings.filling
        technique = settings.techniques[cell.technique] if cell.technique else None

        def obfuscate(lines: Sequence[str]) -> Obfuscated:
            if technique is None:
                return Obfuscated(list(lines), [[] for _ in lines])
            masked = mask_beside(technique, lines, files.word_counts, threads)
            if method is None or isinstance(method, Distilled):
                return Obfuscated(masked.lines, masked.spans)
            names = [f"canary {line}" for line in lines]
            planted = PlantedLines(masked.lines, masked.spans, names, files.documents)
            folder = Path(str(files.masked)) / str(cell.technique)
            like = next(iter(self.contexts), None)
            context = context_beside(method, folder, files, cell, threads, like, planted)
            # Lines behind those of the corpus, each a document of its own.
            documents = [f"canary {number}" for number in range(len(lines))]
            shard = Shard(0, 1 + len(context.masked), masked.lines, masked.spans, documents)
            return Obfuscated(context.corpus_filler().fill_shard(shard).lines, masked.spans)

        return obfuscate
