"""Pages show the stored numbers, and no others."""

import json

import pytest

from benchmarks import court_tables, entities, identifier_recall, nbest
from benchmarks.stored_numbers import RESULTS, ROOT, with_table

TABLES = {
    **{name: (page, table) for name, (page, _, table) in court_tables.TABLES.items()},
    "entities": ("docs/detectors.md", entities.table),
    "identifier_recall": ("docs/privacy.md", identifier_recall.table),
    "nbest": ("docs/speech.md", nbest.table),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_page_shows_the_stored_numbers(name):
    place, table = TABLES[name]
    page = (ROOT / place).read_text(encoding="utf-8")
    assert page == with_table(page, name, table(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))))
