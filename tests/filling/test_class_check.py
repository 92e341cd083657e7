"""Fills that have the class of their marker, or the form of the masked word where no class is known."""

from fill_command import fill, report, write
from masked_sentences import masked
from tiny_masked_models import WORDS as COMMON_WORDS
from tiny_masked_models import bert_of_bias, save, word_piece_tokenizer

from tasks.corpora.words import fold
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import Casing
from tasks.filling.surrogates.class_check import ClassCheckedFiller
from tasks.filling.surrogates.class_words import ClassWords
from tasks.filling.surrogates.filler import SurrogateFiller
from tasks.filling.surrogates.marked_slots import kinds_of_slots
from tasks.filling.unigram_filler import UnigramFiller
from tasks.made_up.known import gender_of_name, kinds_of_place
from tasks.masking.taggers.tagger import EntitySpan, Tagger

LETTERS = "abcdefghijklmnopqrstuvwxy"
CITIES, PEOPLE = ([f"{kind}{letter}" for letter in LETTERS] for kind in ("City", "Person"))
WORDS = ["the", "house", "runs", *CITIES, *PEOPLE]


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


CLASS_WORDS = ClassWords(ByPrefix(), {})


def allowed(words, label, class_words=CLASS_WORDS):
    mask = class_words.weights(words, label)
    return mask if mask is None else {word for word, is_allowed in zip(words, mask, strict=True) if is_allowed}


def checked(class_words, *liked):
    """A check of what is drawn by frequency among the words of a class: the first liked one, where there is one."""
    counts = dict.fromkeys(WORDS, 1) | {word: 1000 ** (5 - place) for place, word in enumerate(liked)}
    frequencies = WordFrequencies.of(counts.items())
    filler = UnigramFiller({None: frequencies}, MarkerRandomness(1), class_words)
    casing, surrogates = Casing({}, filler_is_cased=True), SurrogateFiller(MarkerRandomness(1))
    return ClassCheckedFiller(filler, casing, CLASS_WORDS, surrogates)


def fills(filler, *texts):
    sentences = [masked(text, number) for number, text in enumerate(texts, start=1)]
    return [[fill.word for fill in line] for line in filler.fill(CLASS_WORDS.with_kinds(texts, sentences), int)]


def test_words_by_class():
    assert allowed(WORDS, "LOCATION") == {*CITIES}
    assert allowed(WORDS, "PERSON") == {*PEOPLE}
    words = ["Anna", "anna", "will", "May", "may", "1984", "12", "five", "dollars", "x1", "London", "1st"]
    # A class with few words is no restriction.
    assert allowed(words, "DATE") is None
    years, people = [str(year) for year in range(1900, 1930)], [f"Person{number}" for number in range(30)]
    words += [*years, *people, *(f"City{number}" for number in range(30))]
    labels = ("PERSON", "LOCATION", "DATE", "NUMBER", "MONEY")
    of = {label: allowed(words, label, ClassWords(ByPrefix(), {"may": "May"})) for label in labels}
    assert {"Anna", *people} <= of["PERSON"]
    assert {"anna", "will"} & of["PERSON"] == set()
    assert "London" in of["LOCATION"]
    assert of["DATE"] == {"May", "may", "1984", "12", *years}
    assert of["NUMBER"] == {"1984", "12", "five", *years}
    assert of["MONEY"] == {"1984", "12", "dollars", *years}


def test_where_no_class_is_known_a_fill_has_the_form_of_the_masked_word():
    """At least twenty words of each form: ending, capital, figures; of each the first."""
    endings = [f"wal{letter}k{ending}" for ending in ("ing", "ed", "s", "") for letter in LETTERS]
    words = [*endings, *CITIES, *(str(number) for number in range(100, 130))]
    forms = {word.lower(): word for word in CITIES}
    class_words = ClassWords(ByPrefix(), forms)

    def first(before, original):
        (form,) = kinds_of_slots(masked(f"{before}{{MASK:{original}}} .", style="mask"), forms)
        return words[class_words.weights(words, form).argmax()]

    written = [first("he ", word) for word in ("singing", "called", "boats", "boat")]
    assert written == ["walaking", "walaked", "walaks", "walak"]
    assert [first("in ", word) for word in ("Zurich", "citya", "1987")] == ["Citya", "Citya", "100"]
    assert first("", "Boats") == "walaks", "the capital is the sentence's"


def test_a_filler_chooses_among_the_words_of_the_class_and_a_wrong_fill_becomes_a_surrogate():
    filler = checked(CLASS_WORDS, "the", "Cityh", "Personb")
    texts = ["The bank of {PERSON:Tom} in {LOCATION:Bonn}", "Go to {LOCATION:Bonn}", "nothing here", "Be {MASK:x}"]
    (person, place), *others = fills(filler, *texts)
    assert (person, *others) == ("Personb", ["Cityh"], [], ["the"])
    assert place not in WORDS
    assert fold(place) in kinds_of_place()
    # The tagger does not know the surrogate for a place.
    counts = {"class_slots": 3, "class_matches_first": 2, "class_matches": 2, "class_surrogates": 1}
    assert dict(filler.counts) == counts
    ((word,),) = fills(checked(None, "house"), "Go to {PERSON:Mary}")
    assert gender_of_name(word) is True


CITY_NAMES = (
    "London Paris Berlin Madrid Rome Chicago Boston Dallas Houston Seattle Denver Detroit Toronto Sydney Tokyo Moscow "
    "Vienna Prague Dublin Oslo Miami Atlanta Phoenix Cairo Athens Lisbon Warsaw Milan Munich Hamburg"
).split()


def test_the_command_with_a_masked_model_and_a_real_tagger(folder, capsys):
    """The model would write ``house`` at every marker; the best city is the one that it likes second."""
    words = [*COMMON_WORDS, "house", "she", "lives", "in", "now", *map(str.lower, CITY_NAMES)]
    tokenizer = word_piece_tokenizer(list(dict.fromkeys(words)))
    save(bert_of_bias(tokenizer, {"house": 9.0, "berlin": 5.0}, others=-20.0), tokenizer, folder / "filler")
    write("counts.tsv", ["house\t9000", *(f"{city}\t10" for city in CITY_NAMES)])
    files = {"filler": "filler", "word_counts": "counts.tsv"}
    write("text.txt", ["She lives in [LOCATION] now."])
    assert fill("top_1", "classes=ignore", **files)[0] == ["She lives in house now."]
    lines, measured = fill("top_1", "classes=match", **files)
    assert lines == ["She lives in Berlin now."]
    assert (measured["class_matches_first"], measured["class_matches"]) == (1, 1)
    assert report()["warnings"] == []
    write("text.txt", ["She lives in [MASK] now."])
    fill("top_1", "classes=match", **files)
    (warning,) = report()["warnings"]
    assert "no marker has a class" in warning
    assert f"warning: {warning}\n" in capsys.readouterr().err
