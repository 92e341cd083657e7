"""What a fill works with, read once: kept words, word counts, the secret of draws, what was learned, and the model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError
from tasks.filling.fill import DEFAULT_WORK_FOLDER, FillFiles
from tasks.filling.filled_corpus import CorpusFiller
from tasks.filling.fillers.filler_folder import is_causal, refuse_misfit
from tasks.filling.frequencies.word_frequencies import KeptWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, fill_secret
from tasks.filling.masked_sentence import Casing, small_words, usual_forms
from tasks.filling.restoration import GenericWords
from tasks.filling.settings import SHIPPED_FILLER, ClassAware, FillingMethod, LanguageAware
from tasks.parts import Work
from tasks.privacy.settings import ReleaseSettings
from tasks.records.cell import Cell
from tasks.torch_setup import set_up_torch

if TYPE_CHECKING:
    from tasks.filling.beside_corpus import PlantedLines
    from tasks.filling.causal_lm.language_model import CausalLanguageModel
    from tasks.filling.masked_lm.candidate_words import CandidateWords
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
    from tasks.filling.masked_lm.weighing import PreparedWeighing
    from tasks.filling.place_languages import PlaceLanguages
    from tasks.filling.surrogates.class_check import ClassChecks, ClassWords


@dataclass(frozen=True)
class Learned:
    """What a method has learned before the first line."""

    frequencies: WordFrequencies | None = None
    """How frequent words are taken to be, where that is not as in the word counts."""
    weighing: "PreparedWeighing | None" = None
    """How a masked language model's scores are weighed."""
    word_factors: dict[str, float] | None = None
    """Of folded words, what is added to a causal language model's scores, in nats."""
    languages: "PlaceLanguages | None" = None
    """Of places and words, where fills keep them."""
    measured: dict[str, Any] = field(default_factory=dict)
    """What the report says of it."""

    def also(self, frequencies: WordFrequencies, **measured: object) -> "Learned":
        """With other frequencies, and what there is to say of them."""
        return replace(self, frequencies=frequencies, measured={**self.measured, **measured})


class FillerModel:
    """The language model of a fill, loaded when it is first asked for, and once; each device loads its own."""

    def __init__(self, name: str, threads: int) -> None:
        """``name``: hub name, folder or ``package:NAME/FOLDER``."""
        self.name, self._threads = name, threads

    def __reduce__(self) -> tuple[type["FillerModel"], tuple[str, int]]:
        return FillerModel, (self.name, self._threads)

    @cached_property
    def is_causal(self) -> bool:
        """Whether it is a causal language model, and no masked one."""
        return is_causal(self.name)

    @cached_property
    def masked(self) -> "MaskedLanguageModel":
        """A masked one; ``ModelError`` where it cannot be used."""
        set_up_torch(self._threads)
        from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

        return MaskedLanguageModel.load(self.name)

    @cached_property
    def causal(self) -> "CausalLanguageModel":
        """A causal one; ``ModelError`` where it cannot be used."""
        set_up_torch(self._threads)
        from tasks.filling.causal_lm.language_model import CausalLanguageModel

        return CausalLanguageModel.load(self.name)


@dataclass(frozen=True)
class FillContext:
    """All that one fill works with. What is made of it is made when it is first asked for."""

    method: FillingMethod
    files: FillFiles
    """Those that the method reads."""
    cell: Cell
    threads: int
    release: ReleaseSettings
    """What may leave of the corpus: noisy counts ask for it."""
    kept: KeptWords
    word_counts: WordFrequencies | None
    secret: bytes
    """What draws are made of besides the seed: nothing, unless they follow what was masked. Found once for all
    devices: a sidecar that is replaced meanwhile would give each of them other draws."""
    model: FillerModel
    work_folder: str
    """Where weights that were learned are kept for later fills."""
    planted: "PlantedLines | None" = None
    """Counted with the corpus, for an attack."""

    @classmethod
    def read(
        cls,
        method: FillingMethod,
        files: FillFiles,
        cell: Cell,
        threads: int,
        *,
        release: ReleaseSettings | None = None,
        work_folder: str | None = None,
        like: "FillContext | None" = None,
    ) -> "FillContext":
        """Read what belongs to a fill; ``like``: one whose model and word counts it has too, and whatever was made of
        what both have in common.

        Raises ``ParameterError`` where the method does not run with such a filler, ``CorpusError`` where a file cannot
        be read.
        """
        files = files.read_by(method)
        if files.filler:
            refuse_misfit(method, files.filler)
        counts = like.word_counts if like and like.method.counts_masked_words == method.counts_masked_words else None
        if counts is None and files.word_counts:
            counts = WordFrequencies.read(files.word_counts, letters=method.counts_masked_words)
        languages = method.languages if isinstance(method, LanguageAware) else []
        if counts is None and (method.needs_word_counts or languages or files.filler == SHIPPED_FILLER):
            counts = WordFrequencies.published(languages, letters=method.counts_masked_words)
        context = cls(
            method,
            files,
            cell,
            threads,
            release or ReleaseSettings(),
            KeptWords.read(files.kept_words),
            counts,
            fill_secret(files.sidecar) if files.sidecar and method.follows_originals else b"",
            like.model if like and files.filler else FillerModel(files.filler or "", threads),
            work_folder or DEFAULT_WORK_FOLDER,
        )
        if like:
            context.__dict__.update(
                {name: like.__dict__[name] for name in context._common(like) & like.__dict__.keys()}
            )
        return context

    def _common(self, other: "FillContext") -> set[str]:
        """The names of what is made of the same things in both."""
        if self.word_counts is not other.word_counts:
            return set()
        checks = [each.method.class_check if isinstance(each.method, ClassAware) else None for each in (self, other)]
        same = {
            "usual_forms": True,
            "candidates": self.files.filler == other.files.filler,
            "class_words": checks[0] == checks[1],
        }
        if (self.method, self.files) == (other.method, other.files) and not other.planted:
            same |= {"masked": True, "learned": True}
        return {name for name, is_same in same.items() if is_same}

    def __getstate__(self) -> dict[str, Any]:
        """What a device gets: not the text, and nothing that it makes for itself."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"learned": self.learned}

    @cached_property
    def masked(self) -> Sequence[str]:
        """The masked text as a whole, for what is learned from it before the first line is filled."""
        return list(read_lines(self.files.input))

    def lines(self) -> Iterable[str]:
        """The masked text; read as it is filled, unless it was read as a whole."""
        return self.__dict__.get("masked") or read_lines(self.files.input)

    def off_list(self, frequencies: WordFrequencies) -> dict[str | None, WordFrequencies]:
        """Words that are on no list of kept words: of each language where fills keep them, else of ``None``.

        Raises ``CorpusError`` where no word is left of one.
        """
        languages = self.learned.languages
        words: dict[str | None, WordFrequencies] = {None: frequencies}
        if languages is not None:
            shares = languages.shares(frequencies.words)
            words = {language: frequencies.shared(share) for language, share in shares.items()}
        left = {language: each.shared(self.kept.off_list(each.words, language)) for language, each in words.items()}
        for language, each in left.items():
            if not each.words:
                raise CorpusError(
                    f"every word of the word counts{f' that is of {language!r}' if language else ''} is on the list of "
                    "kept words: nothing to draw; give --word-counts of more text"
                )
        return left

    @cached_property
    def learned(self) -> Learned:
        """What the method has learned before the first line."""
        return self.method.learn(self)

    @property
    def frequencies(self) -> WordFrequencies:
        """The word counts, of a method that needs them."""
        assert self.word_counts is not None, "the method says that it needs them"
        return self.word_counts

    @property
    def sidecar(self) -> str | None:
        """What says which words stood at the markers while these are filled. Where masked words were counted, only the
        noisy counts may say so, in the report too."""
        return None if self.method.counts_masked_words else self.files.sidecar

    @cached_property
    def randomness(self) -> MarkerRandomness:
        """Of the filler. Where classes alone are matched it is that of the seed: surrogates alone follow originals."""
        return MarkerRandomness(self.seed, b"" if self.method.matches_classes else self.secret)

    @property
    def seed(self) -> int:
        """Of all draws."""
        return 1 if self.cell.seed is None else self.cell.seed

    @cached_property
    def usual_forms(self) -> dict[str, str]:
        """How words are usually written, as the word counts say."""
        counts = self.word_counts
        return usual_forms(zip(counts.words, counts.counts.tolist(), strict=True)) if counts else {}

    def casing(self, *, is_cased: bool) -> Casing:
        """How the words of a filler are written that knows capitals from its sentences, or does not."""
        counts = self.word_counts
        small = small_words(zip(counts.words, counts.counts.tolist(), strict=True)) if counts and is_cased else set()
        return Casing(self.usual_forms, filler_is_cased=is_cased, small=small)

    @cached_property
    def candidates(self) -> "CandidateWords":
        """The words that a masked language model can write."""
        from tasks.filling.masked_lm.candidate_words import candidate_words

        known = self.word_counts.folded() if self.word_counts else None
        return candidate_words(self.model.masked.tokenizer, name=self.model.name, known_words=known)

    @cached_property
    def class_words(self) -> "ClassWords":
        """Words by class, of a method that knows classes; ``ModelError`` where its tagger cannot be used."""
        from tasks.filling.surrogates.class_check import ClassWords
        from tasks.filling.surrogates.values import SurrogateValues
        from tasks.masking.taggers.entity_tagger import load_tagger

        assert isinstance(self.method, ClassAware), "the method says so"
        tagger = load_tagger(self.method.class_check.tagger, self.threads)
        return ClassWords(tagger, SurrogateValues(), self.usual_forms)

    @cached_property
    def classes(self) -> "ClassChecks | None":
        """What holds fills to the classes of their markers, where that is asked for."""
        if not isinstance(self.method, ClassAware) or not self.method.matches_classes:
            return None
        from tasks.filling.surrogates.class_check import ClassChecks

        return ClassChecks(self)

    def corpus_filler(self) -> CorpusFiller:
        """All that one device needs to fill shards."""
        built = self.method.build(self)
        if self.classes is not None:
            built = built._replace(filler=self.classes.checked(*built))
        generic = None
        if self.files.sidecar and self.word_counts:
            generic = GenericWords(self.word_counts.off_list_probabilities(self.kept), self.word_counts.ranks())
        method = self.method
        languages = self.learned.languages
        return CorpusFiller(*built, self.kept, method.merges_markers, generic, languages, method.copies)

    def shard_filler(self) -> Work:
        """Fills a shard, on one device."""
        return self.corpus_filler().fill_shard
