"""Word errors by hand, their intervals, and the words that a technique masks."""

import numpy as np
import pytest
from command_results import write_records

from tasks.errors import SpeechError
from tasks.speech.word_errors.references import language_groups
from tasks.speech.word_errors.word_errors import (
    count_errors,
    mean_over_seeds,
    paired_difference_over_seeds,
    read_errors,
    write_errors,
)

REFERENCES = {"u3": "Good morning, Anna!", "u1": "short one here", "u2": "quite a bit of longer sentence"}
HYPOTHESES = {
    "u1": "shoe order one",  # shoe inserted, short to order, here deleted
    "u2": "quite bit of an even longest sentence here",  # a deleted, an and even inserted, longer to longest, here
    "u3": "good morning anna",
}


def rate(errors, group="all"):
    counts = errors.of(group)
    return counts.errors.sum() / counts.units.sum()


def mask(*places, of):
    return np.isin(np.arange(of), places)


def test_counts_by_hand_in_the_order_of_the_ids_and_in_a_file(tmp_path):
    masked = {"masked:names": {"u1": mask(0, of=3), "u2": mask(of=6), "u3": mask(2, of=3)}}
    errors = count_errors(REFERENCES, HYPOTHESES, masked)
    assert errors.utterance_ids == ("u1", "u2", "u3")
    assert errors.of("all").units.tolist() == [3, 6, 3]
    assert errors.of_kind["insert"].tolist() == [1, 3, 0]
    assert errors.of_kind["delete"].tolist() == errors.of_kind["substitute"].tolist() == [1, 1, 0]
    assert errors.of("all").hits.tolist() == [1, 4, 3]
    assert rate(errors) == 8 / 12
    # A masked word is substituted, with an insertion next to it.
    assert errors.of("masked:names").errors.tolist() == [2, 0, 0]
    path = tmp_path / "counts.tsv"
    write_errors(path, errors)
    found = read_errors(path)
    assert found.utterance_ids == errors.utterance_ids
    for group in ("all", "characters", "masked:names", "rest:names"):
        assert np.array_equal(found.of(group)[:2], errors.of(group)[:2])
    assert path.stat().st_mode & 0o777 == 0o600
    assert "shoe" not in path.read_text()


@pytest.mark.parametrize(("silent", "inserted"), [({}, 0), ({"s": "...", "t": "thanks for, watching"}, 3)])
def test_words_recognised_in_silence_are_insertions(silent, inserted):
    said = {"a": "one two", "b": "yes", "s": "", "t": "..."}
    masked = {"masked:names": {"a": mask(1, of=2), "b": mask(of=1)}}
    errors = count_errors(said, {"a": "one", "b": "yes", **silent}, masked)
    assert errors.utterance_ids == ("a", "b", "s", "t")
    assert errors.of("all").units.tolist() == [2, 1, 0, 0]
    assert errors.of_kind["insert"].tolist() == [0, 0, 0, inserted]
    assert not errors.missing
    assert rate(errors) == (1 + inserted) / 3
    assert rate(errors, "masked:names") == 1.0
    assert errors.of("rest:names").errors.sum() == inserted


def test_hypotheses_without_a_reference_and_references_without_a_word_are_errors_that_name_ids_only():
    with pytest.raises(SpeechError, match=r"1 of 2 hypotheses have ids that no reference has: 'u9'") as caught:
        count_errors(REFERENCES, {"u9": "secret words", "u1": "short"})
    assert "secret" not in str(caught.value)
    with pytest.raises(SpeechError, match="none of the 1 references holds a word"):
        count_errors({"a": "..."}, {})


@pytest.mark.parametrize(
    ("heard", "errors", "hits"),
    [
        ("call zuckerman now", 0, 1),
        ("call sucker man now", 2, 0),  # a substitution and the insertion next to it are the name's
        ("call now", 1, 0),
        ("call zuckerman right now", 0, 1),  # an insertion next to a recognised name is not the name's
        ("all zuckerman now", 0, 1),
        ("please do call zuckerman", 0, 1),
    ],
)
def test_errors_on_masked_words(heard, errors, hits):
    counted = count_errors({"u": "call Zuckerman now"}, {"u": heard}, {"masked:names": {"u": mask(1, of=3)}})
    group, rest = counted.of("masked:names"), counted.of("rest:names")
    assert (group.units.tolist(), group.errors.tolist(), group.hits.tolist()) == ([1], [errors], [hits])
    # Nothing is counted twice, and nothing is lost.
    assert (group.errors + rest.errors).tolist() == counted.of("all").errors.tolist()
    assert (group.units + rest.units).tolist() == [3]


def test_paired_difference_cancels_what_two_systems_share():
    references = {f"u{index:03}": "a b" for index in range(100)}
    first, second = (
        count_errors(references, {name: "a x" if int(name[1:]) < wrong else "a b" for name in references})
        for wrong in (50, 40)
    )
    difference, low, high = paired_difference_over_seeds([(first, second)], 1000, 0.95, 1)
    assert difference == pytest.approx(10 / 200)
    assert 0 < low < 0.05 < high
    assert paired_difference_over_seeds([(first, first)], 1000, 0.95, 1) == (0.0, 0.0, 0.0)
    for other in ({"u000": "a b c"}, {"u999": "a"}):
        third = count_errors(references | other, {})
        with pytest.raises(SpeechError, match="measured on other references"):
            paired_difference_over_seeds([(first, third)], 100, 0.95, 1)
    assert mean_over_seeds([count_errors({"u": "a"}, {"u": "b"})], 200, 0.95, 1) == (1.0, None, None)


def test_errors_where_languages_change(tmp_path):
    said = {"u1": "I said que bueno, Anna is here", "u2": "all in English"}
    heard = {"u1": "I said Kay bueno Anna here", "u2": "all in English"}
    first = {"utterance_id": "u1", "text": said["u1"], "languages": "eessxee"}
    second = {"utterance_id": "u2", "text": said["u2"], "languages": ["en", "en", "en"]}
    path = write_records(tmp_path / "manifest.jsonl", [first, second])
    errors = count_errors(said, heard, language_groups(said, ["en", "es"], path))
    found = {name: errors.of(f"language:{name}") for name in errors.named("language")}
    # Words of u1 and of u2, and errors in u1, where *que* is substituted and *is* deleted, which is a switch back.
    assert {name: (*counts.units.tolist(), counts.errors[0]) for name, counts in found.items()} == {
        "en": (4, 3, 1),
        "es": (2, 0, 1),
        "mixed": (1, 0, 0),
        "embedded words": (2, 0, 1),
        "switch points": (2, 0, 2),
        "1 behind a switch": (2, 0, 0),
        "2 behind a switch": (1, 0, 0),
        **{f"{distance} behind a switch": (0, 0, 0) for distance in (3, 4, 5)},
        "lines in one language": (0, 3, 0),
        "mixed lines": (7, 0, 2),
    }
    write_records(path, [first | {"languages": "ees"}])
    with pytest.raises(SpeechError, match="line 1: 'languages' needs a letter or code for each of 7 words"):
        language_groups(said, ["en", "es"], path)


def test_mixed_error_rate_counts_characters_where_no_space_divides():
    errors = count_errors({"u": "我们 book 一个meeting", "v": "yes"}, {"u": "我们book 一 meetings", "v": "yes"})
    counts = errors.of("mixed units")
    # 我 们 book 一 个 meeting: 个 is deleted and meeting substituted.
    assert (counts.units.tolist(), counts.errors.tolist()) == ([6, 1], [2, 0])
