"""Marginals of the conditional random field, compared with CRFsuite's own tagger."""

from pathlib import Path

import pycrfsuite
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.masking.settings import CrfTagger
from tasks.masking.taggers import crf_tagger
from tasks.masking.taggers.crf_features import feature_lists, tokens_of
from tasks.masking.taggers.crf_tagger import CLUSTERS_FILE, MODEL_FILE, OUTSIDE, CrfModel

FOLDER = Path(crf_tagger.__file__).parent / "crf_model"
LINES = [
    "",
    "...",
    "Anna",
    "my name is Anna Smith and I live at 12 Elm Street, Boston, MA 02134!",
    "call me on 555-0134 or write to anna.k@corp.local on Tuesday, 3 May 2021",
    "THE MEETING WITH DR JONES OF ACME CORP IS ON FRIDAY",
    "we will see what he says, then we go home. Ibuprofen and B2B -- 3.5 %",
    " ".join(["tell Rosa that Kim paid 30 dollars in Lima"] * 40),
]


def by_crfsuite(folder: Path, minimum: float) -> list[list[tuple[int, int, str, float]]]:
    """The tagged words, by CRFsuite's strings and marginals."""
    rows = [line.partition("\t") for line in (folder / CLUSTERS_FILE).read_text(encoding="utf-8").splitlines()]
    features = feature_lists({word: tuple(clusters.split(" ")) for word, _, clusters in rows})
    model = pycrfsuite.Tagger()
    model.open(str(folder / MODEL_FILE))
    types = {label[2:] for label in model.labels() if label != OUTSIDE}
    found = []
    for line in LINES:
        tokens = tokens_of(line)
        model.set(features(line, tokens))
        found.append([])
        for place, (start, end, is_word) in enumerate(tokens):
            probability = 1.0 - model.marginal(OUTSIDE, place)
            if is_word and probability >= minimum:
                of_type = dict.fromkeys(types, 0.0)
                for label in set(model.labels()) - {OUTSIDE}:
                    of_type[label[2:]] += model.marginal(label, place)
                found[-1].append((start, end, max(of_type, key=of_type.__getitem__), probability))
    return found


@pytest.mark.parametrize("most_groups", [1 << 17, 10])
def test_marginals_are_those_of_crfsuite_alone_and_among_other_lines(monkeypatch, most_groups):
    monkeypatch.setattr(crf_tagger, "_MOST_GROUPS", most_groups)
    model = CrfModel(CrfTagger(kind="crf", minimum_probability=0.01))
    expected = by_crfsuite(FOLDER, 0.01)
    alone = [words for line in LINES for words in model.tagged_words([line])]
    for found in (model.tagged_words(LINES), alone):
        assert [[word[:3] for word in line] for line in found] == [[word[:3] for word in line] for line in expected]
        assert sum(map(len, found)) > 100
        for line, other in zip(found, expected, strict=True):
            assert [word[3] for word in line] == pytest.approx([word[3] for word in other], abs=1e-12)


@given(st.text(max_size=60))
def test_every_character_but_white_space_is_in_exactly_one_token(text):
    covered = [index for start, end, _ in tokens_of(text) for index in range(start, end)]
    assert covered == sorted(set(covered))
    assert {index for index, character in enumerate(text) if not character.isspace()} <= set(covered)
