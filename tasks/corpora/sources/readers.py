"""All corpora that can be brought in: those of this package, and those that others register."""

from typing import TYPE_CHECKING

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.mixture import GROUP, SOURCES, MixtureCorpus
from tasks.settings.registry import any_of

if TYPE_CHECKING:
    AnyCorpus = CorpusSettings
else:
    AnyCorpus = any_of(GROUP, (*SOURCES, MixtureCorpus))
