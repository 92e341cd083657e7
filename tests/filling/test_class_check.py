import json
from functools import partial

import numpy as np
from masked_sentences import masked
from stage_commands import settings

from tasks.corpora.words import fold
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import Casing, Fill
from tasks.filling.methods.unigram import UnigramFiller
from tasks.filling.surrogates.class_check import ClassCheckedFiller
from tasks.filling.surrogates.class_words import ClassRestriction, ClassWords
from tasks.filling.surrogates.filler import SurrogateFiller
from tasks.filling.surrogates.marked_slots import kinds_of_slots, labels_of_slots
from tasks.made_up.known import gender_of_name, kinds_of_place
from tasks.masking.taggers.tagger import EntitySpan, Tagger

LETTERS = "abcdefghijklmnopqrstuvwxy"
CITIES = [f"City{letter}" for letter in LETTERS]
PEOPLE = [f"Person{letter}" for letter in LETTERS]
COMMON = ["the", "house", "runs"]
WORDS = [*COMMON, *CITIES, *PEOPLE]


class ByPrefix(Tagger):
    """Knows every City and Person by its first letters, and that no sentence about a bank has a Cityh."""

    name = "prefix"
    entity_types = ["GPE", "ORDINAL", "PERSON"]  # noqa: RUF012

    def tag(self, lines):
        for line in lines:
            spans = []
            for word in dict.fromkeys(line.replace(".", " ").split()):
                label = {"City": "GPE", "Pers": "PERSON", "1st": "ORDINAL"}.get(word[:4])
                if label and not ("bank" in line and word == "Cityh"):
                    spans.append(EntitySpan(line.index(word), line.index(word) + len(word), label))
            yield line, spans


class Scripted:
    """A filler that prefers the words of a list, in its order, and is restricted to those of a class."""

    forward_seconds = None
    candidate_count = len(WORDS)

    def __init__(self, class_words, *best):
        self.scores = np.array([-float(index) - 100 for index in range(len(WORDS))])
        self.scores[[WORDS.index(word) for word in best]] = -np.arange(len(best))
        self.restriction = ClassRestriction(WORDS, class_words)

    def fill(self, sentences, advance):
        return [
            [Fill(best(self.restriction, kind, self.scores)) for kind in self.restriction.kinds(each)]
            for each in sentences
        ]


def best(restriction, kind, scores, words=WORDS):
    """The word of the highest score that a restriction leaves."""
    scores = scores.copy()
    restriction.restrict(kind, scores)
    return words[scores.argmax()]


class Unrestricted(ClassWords):
    """Knows no word of any class."""

    def allowed(self, words, kind):
        return None if isinstance(kind, str) else super().allowed(words, kind)


CLASS_WORDS = ClassWords(ByPrefix(), {})
ALLOWED = partial(CLASS_WORDS.allowed, WORDS)


def checked(filler):
    surrogates = SurrogateFiller(MarkerRandomness(1))
    return ClassCheckedFiller(filler, Casing({}, filler_is_cased=True), CLASS_WORDS, surrogates)


def fills(filler, *texts, **options):
    sentences = [masked(text, number, **options) for number, text in enumerate(texts, start=1)]
    return [[fill.word for fill in line] for line in filler.fill(sentences, lambda _: None)]


def test_words_by_class():
    assert [word for word, allowed in zip(WORDS, ALLOWED("LOCATION"), strict=True) if allowed] == CITIES
    assert [word for word, allowed in zip(WORDS, ALLOWED("PERSON"), strict=True) if allowed] == PEOPLE
    words = ["Anna", "anna", "will", "May", "may", "1984", "12", "five", "dollars", "x1", "London", "1st"]
    # A class with few words is no restriction.
    assert ClassWords(ByPrefix(), {}).allowed(words, "DATE") is None
    years, people = [str(year) for year in range(1900, 1930)], [f"Person{number}" for number in range(30)]
    words += [*years, *people, *(f"City{number}" for number in range(30))]
    class_words = ClassWords(ByPrefix(), {"may": "May"})
    of = {
        label: {word for word, is_allowed in zip(words, class_words.allowed(words, label), strict=True) if is_allowed}
        for label in ("PERSON", "LOCATION", "DATE", "NUMBER", "MONEY")
    }
    assert {"Anna", *people} <= of["PERSON"]
    assert {"anna", "will"} & of["PERSON"] == set()
    assert "London" in of["LOCATION"]
    assert of["DATE"] == {"May", "may", "1984", "12", *years}
    assert of["NUMBER"] == {"1984", "12", "five", *years}
    assert of["MONEY"] == {"1984", "12", "dollars", *years}


def test_where_no_class_is_known_a_fill_has_the_form_of_the_masked_word():
    """Twenty words of each form: ending, capital, figures. The filler likes them in their order."""
    endings = [
        f"{stem}{ending}" for ending in ("ing", "ed", "s", "") for stem in (f"wal{letter}k" for letter in LETTERS)
    ]
    words = [*endings, *CITIES, *(str(number) for number in range(100, 130))]
    forms = {word.lower(): word for word in CITIES}
    restriction = ClassRestriction(words, Unrestricted(ByPrefix(), forms))
    scores = -np.arange(len(words), dtype=np.float32)

    def fill(before, original):
        (form,) = kinds_of_slots(masked(f"{before}{{MASK:{original}}} .", style="mask"), forms)
        return best(restriction, form, scores, words)

    written = [fill("he ", word) for word in ("singing", "called", "boats", "boat")]
    assert written == ["walaking", "walaked", "walaks", "walak"]
    assert [fill("in ", word) for word in ("Zurich", "citya", "1987")] == ["Citya", "Citya", "100"]
    assert fill("", "Boats") == "walaks", "the capital is the sentence's"


def test_labels_of_markers_and_of_the_sidecar():
    text = "{PERSON:Tom} in {LOCATION:Paris} {LOCATION:Texas} or {PERSON:Ann} {LOCATION:Bonn}"
    assert labels_of_slots(masked(text)) == ["PERSON", "LOCATION", "LOCATION", "PERSON", "LOCATION"]
    assert labels_of_slots(masked(text, style="mask", merge=True)) == ["PERSON", "LOCATION", "MASK"]
    assert labels_of_slots(masked(text, style="mask", sidecar=False)) == ["MASK"] * 5


def test_a_filler_chooses_among_the_words_of_the_class_and_a_wrong_fill_becomes_a_surrogate():
    filler = checked(Scripted(CLASS_WORDS, "the", "Cityh", "Personb"))
    texts = ["The bank of {PERSON:Tom} in {LOCATION:Bonn}", "Go to {LOCATION:Bonn}", "nothing here", "Be {MASK:x}"]
    (person, place), *others = fills(filler, *texts)
    assert (person, *others) == ("Personb", ["Cityh"], [], ["the"])
    assert place not in WORDS
    assert fold(place) in kinds_of_place()
    # The tagger does not know the surrogate for a place.
    assert dict(filler.counts) == {
        "class_slots": 3, "class_matches_first": 2, "class_matches": 2, "class_surrogates": 1,
    }  # fmt: skip
    ((word,),) = fills(checked(Scripted(Unrestricted(ByPrefix(), {}), "house")), "Go to {PERSON:Mary}")
    assert gender_of_name(word) is True


def test_unigram_draws_among_the_words_of_the_class():
    frequencies = WordFrequencies.of([("the", 900), *((word, 1) for word in (*CITIES, *PEOPLE))])
    filler = checked(UnigramFiller({None: frequencies}, MarkerRandomness(1), CLASS_WORDS))
    lines = fills(filler, *["{LOCATION:Bonn} and {PERSON:Tom}"] * 40)
    assert all(city in CITIES and person in PEOPLE for city, person in lines)
    assert len({city for city, _ in lines}) > 10
    assert (filler.counts["class_matches_first"], filler.counts["class_matches"]) == (80, 80)


CITY_NAMES = (
    "London Paris Berlin Madrid Rome Chicago Boston Dallas Houston Seattle Denver Detroit Toronto Sydney Tokyo Moscow "
    "Vienna Prague Dublin Oslo Miami Atlanta Phoenix Cairo Athens Lisbon Warsaw Milan Munich Hamburg"
)


def test_the_command_with_a_masked_model_and_a_real_tagger(tmp_path, capsys):
    """The model would write ``house`` at every marker; the best city is the one that it likes second."""
    from tiny_masked_models import WORDS as COMMON_WORDS
    from tiny_masked_models import bert_of_bias, save, word_piece_tokenizer

    from tasks.cli import main

    words = [*COMMON_WORDS, "house", "she", "lives", "in", "now", *CITY_NAMES.lower().split()]
    tokenizer = word_piece_tokenizer(list(dict.fromkeys(words)))
    model = bert_of_bias(tokenizer, {"house": 9.0, "berlin": 5.0}, others=-20.0)
    filler = save(model, tokenizer, tmp_path / "filler")
    (tmp_path / "masked.txt").write_text("She lives in [LOCATION] now.\n", encoding="utf-8")
    counts = [("house", 9000), *((city, 10) for city in CITY_NAMES.split())]
    (tmp_path / "counts.tsv").write_text("".join(f"{word}\t{count}\n" for word, count in counts), encoding="utf-8")
    options = ["--input", tmp_path / "masked.txt", "--word-counts", tmp_path / "counts.tsv", "--filler", filler]
    outputs = ["--method", "top_1", "--output", tmp_path / "filled.txt", "--report", tmp_path / "report.json"]
    for classes, word in (("ignore", "house"), ("match", "Berlin")):
        assert main(["fill", *map(str, options + outputs), *settings(f"classes={classes}")]) == 0
        assert (tmp_path / "filled.txt").read_text(encoding="utf-8") == f"She lives in {word} now.\n"
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["measured"]["class_match_rate_first"], report["measured"]["class_match_rate"]) == (1.0, 1.0)
    assert report["warnings"] == []
    (tmp_path / "masked.txt").write_text("She lives in [MASK] now.\n", encoding="utf-8")
    assert main(["fill", *map(str, options + outputs), *settings("classes=match")]) == 0
    (warning,) = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["warnings"]
    assert "no marker has a class" in warning
    capsys.readouterr()
    assert main(["fill", *map(str, [*options, *outputs[:-2]]), *settings("classes=match")]) == 0
    assert f"warning: {warning}\n" in capsys.readouterr().err
