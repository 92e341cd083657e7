"""A surrogate is never its original, so what it is drawn from must be so large that it does not tell the original."""

import ast
import random
from collections import Counter
from pathlib import Path

import pytest
from masked_sentences import masked

from tasks.corpora.words import fold
from tasks.filling.kept_words import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.surrogates import surrogate_values
from tasks.filling.surrogates.surrogate import SurrogateFiller
from tasks.filling.surrogates.surrogate_figures import figure
from tasks.filling.surrogates.surrogate_forms import other_of_group
from tasks.filling.surrogates.surrogate_groups import FEWEST, GROUPS, GROUPS_OF_CLASS, STAND_INS, others_of_group
from tasks.filling.surrogates.surrogate_values import SurrogateValues, is_one_word

FOLDER = Path(surrogate_values.__file__).parent
VALUES = SurrogateValues()
NOT_DRAWN_FROM = {
    ("works",): "names the list that works come from",
    ("products", "events"): "names the lists that products come from",
    ("CONTACT", "IDENTIFIER"): "classes whose words are not cased",
    ("mr",): "read from the text, never written",
    ("x",): "stands for the other words of a line while one is cased",
    ("They talked about ", " again."): "a sentence that a tagger is asked about",
    ("I think that ", " is good."): "a sentence that a tagger is asked about",
}
DRAWN_WITH_THE_ORIGINAL = {
    "'ap'": "am and pm of a clock: either may be drawn, whatever the original is",
    "'ae'": "a letter that only makes a word longer",
    "[-1, 1]": "before or after a year; how many years is drawn too",
}
ENDINGS = [*surrogate_values._PLACE_ENDINGS, *surrogate_values._ORGANISATION_ENDINGS]


def trees():
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.py"))]


def constants(node):
    """The strings of a literal collection, or of a string that is split; ``None`` for any other expression."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set) and node.elts:
        values = [element.value for element in node.elts if isinstance(element, ast.Constant)]
        if len(values) == len(node.elts) and all(isinstance(value, str) for value in values):
            return tuple(values)
    split = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split"
    if split and isinstance(node.func.value, ast.Constant):
        return tuple(node.func.value.value.split())
    return None


def test_no_list_of_words_in_any_module_is_too_small_to_draw_from():
    """Every literal list of words counts, so that none can be forgotten; others are named above, with a reason."""
    small = set()
    for _, tree in trees():
        types = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.Subscript) for part in ast.walk(node.slice)
        }
        compared = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in node.comparators}
        for node in ast.walk(tree):
            words = constants(node)
            if words is not None and id(node) not in types | compared and len(set(map(fold, words))) < FEWEST:
                small.add(words)
    assert small == set(NOT_DRAWN_FROM)


def test_no_draw_from_a_literal_is_between_two_unless_the_original_may_be_drawn():
    small = set()
    for _, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "choice" in node.func.attr:
                (drawn, *_) = node.args
                size = len(drawn.elts) if isinstance(drawn, ast.List | ast.Tuple) else None
                size = len(drawn.value) if isinstance(drawn, ast.Constant) else size
                if size is not None and size < FEWEST:
                    small.add(ast.unparse(drawn))
    assert small == set(DRAWN_WITH_THE_ORIGINAL)


@pytest.mark.parametrize("group", [*GROUPS, *ENDINGS, *(others for _, others in STAND_INS)], ids=lambda group: group[0])
def test_every_word_of_a_group_may_become_any_other(group):
    assert len(set(map(fold, group))) == len(group) >= FEWEST
    assert [word for word in group if not is_one_word(word)] == []
    for word in group:
        others = others_of_group(word, [group])
        assert set(others) == {other for other in group if other != word}


@pytest.mark.parametrize("word", sorted({word for group in GROUPS for word in group}))
def test_every_surrogate_of_a_word_of_a_group_may_have_other_originals(word):
    found = {other_of_group(word, random.Random(seed)) for seed in range(60)}
    assert word not in found
    assert len(found) >= FEWEST - 1


def test_groups_of_classes_are_groups():
    assert [group for groups in GROUPS_OF_CLASS.values() for group in groups if group not in GROUPS] == []


@pytest.mark.parametrize("word", ["am", "PM", "p.m"])
def test_neither_half_of_the_day_stands_for_the_other(word):
    found = {fold(figure("DATE", random.Random(seed), word)) for seed in range(99)}
    assert found == set(STAND_INS[0][1])


@pytest.mark.parametrize(("label", "original"), [("DATE", "5:30pm"), ("DATE", "10am"), ("NUMBER", "5pm")])
def test_a_clock_has_either_half_of_the_day_whatever_it_had(label, original):
    halves = Counter(figure(label, random.Random(seed), original)[-2:] for seed in range(400))
    assert min(halves["am"], halves["pm"]) > 150


def surrogates(text, kept=(), lines=range(1, 80)):
    by = SurrogateFiller(MarkerRandomness(1), kept=KeptWords(kept), values=VALUES)
    return [[fill.word for _, fill in sorted(by.fills(masked(text, number)).items())] for number in lines]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("{MONEY:euros}", ["euros", "francs"]),
        ("{DATE:May}", ["May", "June"]),
        ("{LOCATION:Main} {LOCATION:Airport}", ["Airport", "Park"]),
        ("{ORGANISATION:Miller} {ORGANISATION:Clinic}", ["Clinic", "Hospital"]),
    ],
)
def test_where_the_list_leaves_two_words_of_a_group_the_one_does_not_stand_for_the_other(text, left):
    (group,) = [group for group in [*GROUPS, *ENDINGS] if left[0] in group and left[1] in group]
    found = Counter(line[-1] for line in surrogates(text, [fold(word) for word in group if word not in left]))
    assert found[left[1]] <= 5
    assert len(found) > 4


@pytest.mark.parametrize("original", ["Isle of Skye", "District of Columbia", "New York", "Gulf of Mexico"])
def test_a_place_has_many_surrogates(original):
    text = " ".join(f"{{LOCATION:{word}}}" for word in original.split())
    assert len({tuple(line) for line in surrogates(text, lines=range(1, 40))}) > 5


def test_pools_of_places_are_large():
    kinds = VALUES._places
    for kind, pools in kinds.items():
        for count in {count for pools in kinds.values() for count in pools}:
            pool = VALUES._pool_of_places(kind, count)
            assert pool is None or len(pool.values) >= 8
        assert len(pools[1].values) > 20
    assert min(map(len, VALUES._peoples)) > 10


@pytest.mark.parametrize("label", ["WORK", "MISCELLANEOUS"])
@pytest.mark.parametrize("count", range(1, 6))
def test_no_named_thing_is_drawn_again_and_again(label, count):
    found = Counter(tuple(VALUES.named_thing(random.Random(seed), label, ["x"] * count, count)) for seed in range(300))
    assert max(found.values()) < 30


def test_an_ending_of_an_organisation_may_be_that_of_any():
    """Were freely drawn ones without ``Clinic``, it would mean ``Hospital``."""
    found = Counter(VALUES.organisation(random.Random(seed), ["Zorblax", "Quux"], 2)[-1] for seed in range(3000))
    assert [word for group in surrogate_values._ORGANISATION_ENDINGS for word in group if not found[word]] == []
    assert sum(found[word] for group in surrogate_values._ORGANISATION_ENDINGS for word in group) < 2400
