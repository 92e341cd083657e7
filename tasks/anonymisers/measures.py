"""Measures of an anonymised version of documents: how much it protects, and what it is still worth.

Half of the documents, drawn by the seed, are *members*. The others are held out: no version of them is read by a
measure that needs text of the same sort which was not released. A new measure is a function and a row of ``MEASURES``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.anonymisers.removed_words import removed_places
from tasks.anonymisers.versions import RAW, Version
from tasks.audit.figure import perplexity_ratio, share_figure
from tasks.audit.held_out import unit_scores
from tasks.audit.reidentification import Guesser, reidentification
from tasks.corpora.sources.document import split_sentences
from tasks.corpora.text_lines import write_lines
from tasks.corpora.words import count_words
from tasks.persons.facts import Document, facts_of
from tasks.persons.persons_command import ByVersion, PersonSettings, attacked
from tasks.records.cell import Cell
from tasks.settings.checks import check_settings
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.language_model.language_models import LanguageModel

_VALUES = 10
"""Most values among which an attacker chooses a fact."""
_OF_PERSONS = ("cpr", "cpr_ci", "cpr_blind", "ipr", "ipr_ci", "ipr_blind", "alone")
_GUESSED = 500
"""Most removed words of a version that the attacker guesses."""
_READ = 150
"""Words of each document that the judge of fluency reads."""
Sums = tuple[np.ndarray, np.ndarray]
"""Log-probabilities in nats and numbers of targets of texts."""


@dataclass(frozen=True)
class Compared:
    """Raw documents, with the model and the sizes of all measures."""

    documents: Sequence[Document]
    versions: Sequence[Version]
    model: str
    seed: int
    resources: ResourceSettings
    folder: Path
    """For adapted models."""

    @cached_property
    def members(self) -> list[int]:
        """Numbers of the documents that count as released."""
        numbers = range(len(self.documents))
        return sorted(Random(self.seed).sample(numbers, -(-len(numbers) // 2)))

    @cached_property
    def held_out(self) -> list[int]:
        """Numbers of the other documents."""
        return sorted(set(range(len(self.documents))) - set(self.members))

    @cached_property
    def raw(self) -> list[str]:
        """The raw texts."""
        return [document.text for document in self.documents]

    @cached_property
    def inferred(self) -> ByVersion:
        """Measures of the risk of persons by version and attacker; empty where the documents have no facts."""
        if not facts_of(self.documents):
            return {}
        texts, everyone = {version.name: version.texts for version in self.versions}, range(len(self.documents))
        settings = PersonSettings(candidates=_VALUES)
        return attacked(self.documents, texts, everyone, settings, self.model, self.seed)

    @cached_property
    def judge(self) -> "LanguageModel":
        """The model before any adaptation."""
        from tasks.language_model.opening import open_language_model

        return open_language_model(self.model)

    @cached_property
    def read_raw(self) -> Sums:
        """Scores of the beginnings of the raw members by the judge."""
        return sums(self.judge, [_beginning(self.raw[number]) for number in self.members])

    @cached_property
    def held_out_lines(self) -> list[str]:
        """Sentences of the documents held out."""
        return sentences(self.raw, self.held_out)

    @cached_property
    def after_raw(self) -> Sums:
        """Scores of these sentences by the model that was adapted to the raw members."""
        return self.after(self.raw)

    def after(self, texts: Sequence[str]) -> Sums:
        """Scores of the sentences held out by a model that was adapted to the members' ``texts``."""
        from tasks.language_model import adapt
        from tasks.language_model.opening import open_language_model

        place = self.folder / f"{len(list(self.folder.iterdir()))}"
        write_lines(text := place.with_suffix(".txt"), sentences(texts, self.members), private=True)
        files = adapt.AdaptFiles(model=self.model, input=str(text), output=str(place))
        settings = check_settings(adapt.COMMAND.settings, adapt.kind_of_files(files), "adaptation")
        adapt.adapt(settings, files, Cell(seed=self.seed), self.resources)
        return sums(open_language_model(place), self.held_out_lines)


def sentences(texts: Sequence[str], numbers: Sequence[int]) -> list[str]:
    """The sentences of some of the texts."""
    return [" ".join(line.split()) for number in numbers for line in split_sentences(texts[number])]


def sums(model: "LanguageModel", texts: Sequence[str]) -> Sums:
    """Scores of texts, each without the others as context."""
    words = [tuple(text.split()) for text in texts]
    logs = model.score_sentences([[each] for each in words])
    return np.array([float(log[0]) for log in logs]), np.array([len(each) + 1.0 for each in words])


def persons(compared: Compared, version: Version) -> dict[str, Any]:
    """CPR and IPR by each attacker; nothing where the documents have no facts."""
    return {
        attacker: {name: one[name] for name in _OF_PERSONS}
        for attacker, one in compared.inferred.get(version.name, {}).items()
    }


def recovered(compared: Compared, version: Version) -> dict[str, Any]:
    """The share of removed words among all, and of these the share that a masked language model guesses."""
    pairs = zip(compared.raw, version.texts, strict=True)
    places = [removed_places(raw, text, number) for number, (raw, text) in enumerate(pairs)]
    of_words = share_figure([*map(len, places)], [*map(count_words, compared.raw)], "")
    every = [place for each in places for place in each]
    drawn = sorted(Random(compared.seed).sample(range(len(every)), min(_GUESSED, len(every))))
    guesser = Guesser(threads=compared.resources.threads)
    guessed = reidentification([every[index] for index in drawn], guesser)
    return {
        **of_words.fields("removed"),
        **guessed["reidentified_1"].fields("recovered"),
        **guessed["reidentified_10"].fields("recovered_10"),
    }


def disclosed(compared: Compared, version: Version) -> dict[str, Any]:
    """The share of members' sentences of which the version has a word that no other sentence has (``audit.held_out``);
    blind: of sentences held out."""
    members, others = sentences(compared.raw, compared.members), compared.held_out_lines
    units = [(each, [str(number) for number in range(len(each))]) for each in (members, others)]
    ((own, other),) = unit_scores(units[0], units[1], sentences(version.texts, compared.members), [(1,)])
    found = iter((own > 0).tolist())
    counted = [len(sentences(compared.raw, [number])) for number in compared.members]
    hits = [sum(islice(found, number)) for number in counted]
    blind = float((other > 0).mean()) if others else None
    return share_figure(hits, counted, "", blind).fields("disclosed")


def worth(compared: Compared, version: Version) -> dict[str, Any]:
    """Perplexity of raw documents held out after adapting to the version, relative to adapting to the raw text."""
    logs, targets = compared.after_raw if version.name == RAW else compared.after(version.texts)
    best = compared.after_raw[0]
    ratio = perplexity_ratio(np.stack([logs, best], 1), np.stack([targets, targets], 1), compared.seed)
    return {"perplexity": float(np.exp(-logs.sum() / targets.sum())), **ratio.ends("times_raw")}


def fluency(compared: Compared, version: Version) -> dict[str, Any]:
    """Perplexity of the version's own beginnings by a model that did not read them, relative to the raw ones."""
    logs, targets = sums(compared.judge, [_beginning(version.texts[number]) for number in compared.members])
    raw_logs, raw_targets = compared.read_raw
    ratio = perplexity_ratio(np.stack([logs, raw_logs], 1), np.stack([targets, raw_targets], 1), compared.seed)
    return ratio.ends("times_raw")


def cost(compared: Compared, version: Version) -> dict[str, Any]:
    """Processor seconds for 1,000 words of the raw text; nothing for a file."""
    words = sum(map(count_words, compared.raw))
    return {} if version.seconds is None else {"seconds_per_1000_words": 1000 * version.seconds / words}


MEASURES: Mapping[str, Callable[[Compared, Version], dict[str, Any]]] = {
    each.__name__: each for each in (persons, recovered, disclosed, worth, fluency, cost)
}
"""Measures by name, in the order of the columns."""


def _beginning(text: str) -> str:
    return " ".join(text.split()[:_READ])
