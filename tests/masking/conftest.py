from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tasks.languages import word_languages
from tasks.masking.every_tagger import TAGGERS
from tasks.masking.taggers.entity_tagger import load_tagger
from tasks.masking.taggers.tagger import Tagger


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Tagger]:
    """The tagger of a kind that ships, loaded once."""
    by_kind = {settings.kind: settings for settings in TAGGERS}
    return cache(lambda kind: load_tagger(by_kind[kind], threads=1))


@pytest.fixture(scope="module")
def learned_once() -> Iterator[None]:
    """What is learned of a text's languages is made once for all tests."""
    learned = cache(word_languages.WordLanguages)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            word_languages,
            "WordLanguages",
            lambda languages, lines, names=False: learned(tuple(languages), tuple(map(tuple, lines)), names=names),
        )
        yield
