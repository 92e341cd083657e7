from collections.abc import Callable
from functools import cache

import pytest

from tasks.masking.every_tagger import TAGGERS
from tasks.masking.taggers.entity_tagger import load_tagger
from tasks.masking.taggers.tagger import Tagger


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Tagger]:
    """The tagger of a kind that ships, loaded once."""
    by_kind = {settings.kind: settings for settings in TAGGERS}
    return cache(lambda kind: load_tagger(by_kind[kind], threads=1))
