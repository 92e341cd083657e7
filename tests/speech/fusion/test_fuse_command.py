"""'palimpsest fuse': from encoded speech to n-best lists, weights found on dev, and what is refused."""

import json

import pytest
import torch
from command_results import measured, refusal, report, write_records
from stage_commands import settings
from tiny_language_models import save_ngram

from tasks.speech.recogniser.encoded_speech import EncodedSpeech, write_encoded
from tasks.speech.recogniser.recogniser import load_recogniser
from tasks.speech.rescoring.nbest_lists import read_nbest

SENTENCES = ["the dog", "a dog and the cat", "the cat", "then a cat", "and the dog", "a cat and a dog"]


@pytest.fixture(scope="module")
def speech(recogniser_folder, tmp_path_factory):
    """Random frames as speech, and a language model of words, for the recogniser with random weights."""
    folder = tmp_path_factory.mktemp("speech")
    (folder / "recogniser").symlink_to(recogniser_folder)
    recogniser_hash = load_recogniser(recogniser_folder).hash
    generator = torch.Generator().manual_seed(1)
    for part, count in (("dev", 4), ("test", 5)):
        texts = {f"{part}-{number}": text for number, text in enumerate(SENTENCES[:count])}
        frames = {name: torch.randn(8, 16, generator=generator) for name in texts}
        encoded = EncodedSpeech(recogniser_hash, dict.fromkeys(texts, 0.32), 0.04, synthetic=True, tensors=frames)
        write_encoded(folder / f"{part}.encoded", encoded)
        lines = [{"utterance_id": name, "audio": f"{name}.wav", "text": text} for name, text in texts.items()]
        write_records(folder / f"{part}.jsonl", lines)
    write_records(folder / "text.txt", SENTENCES * 4)
    save_ngram(folder / "words")
    return folder


def on_dev(speech, model="words"):
    return ["--dev", speech / "dev.encoded", "--dev-manifest", speech / "dev.jsonl", "--model", speech / model]


def fuse(speech, output, *options):
    files = ["--test", speech / "test.encoded", "--test-manifest", speech / "test.jsonl", "--output", output]
    return ["fuse", "--recogniser", speech / "recogniser", *files, "--threads", "1", *options]


def test_weights_are_found_on_dev_and_test_is_decoded(speech, tmp_path):
    output = tmp_path / "lists.jsonl"
    options = settings("fusion.lm_weights=[0, 0.3, 0.6]", "fusion.insertion_bonuses=[0, 1]")
    found = measured(*fuse(speech, output, *on_dev(speech), *options))
    assert (found["utterances"], found["words"]) == (5, 15)
    weights = {point["lm_weight"] for point in found["dev"]["decoded"]}
    assert found["lm_weight"] in weights
    assert {0.0, 0.3} <= weights
    assert found["dev"]["wer"] <= found["dev"]["wer_alone"]
    assert found["real_time_factor"] == pytest.approx(found["decode_seconds"] / 1.6)
    assert not any(word in json.dumps(found) for word in ('"dog', "cat "))
    assert [nbest.utterance_id for nbest in read_nbest(output)] == [f"test-{index}" for index in range(5)]
    assert output.stat().st_mode & 0o777 == 0o600


def test_weights_that_were_tuned_once_decode_other_speech_and_other_models(speech, tmp_path):
    weights, lists = tmp_path / "weights.json", tmp_path / "lists.jsonl"
    given = ["--recogniser", speech / "recogniser", "--threads", "1"]
    tuned = measured("tune-fusion", *given, *on_dev(speech), "--output", weights)
    assert weights.stat().st_mode & 0o777 == 0o600
    here = measured(*fuse(speech, lists, *on_dev(speech)))
    content = lists.read_bytes()
    with_weights = ["--model", speech / "words", "--weights"]
    found = measured(*fuse(speech, lists, *with_weights, weights))
    assert lists.read_bytes() == content
    for name in ("lm_weight", "insertion_bonus", "internal_lm_weight"):
        assert found[name] == tuned[name] == here[name]
    assert tuned["dev"]["grid"] == here["dev"]["grid"]
    assert "dev" not in found
    other = settings("fusion.internal_lm=zero_encoder")
    for options, message in [
        ([tmp_path / "none.json"], "'palimpsest tune-fusion' writes one"),
        ([speech / "dev.jsonl"], "is no file of fusion weights"),
        ([weights, *other], "fusion.internal_lm 'none', and here it is 'zero_"),
    ]:
        assert message in refusal(*fuse(speech, lists, *with_weights, *options))


def unit_model(speech, output, *options):
    files = ["--recogniser", speech / "recogniser", "--input", speech / "text.txt", "--output", output]
    return ["unit-language-model", *files, *options]


def test_a_model_of_the_recognisers_units_is_estimated_and_fused(speech, tmp_path):
    units, lists = tmp_path / "units", tmp_path / "lists.jsonl"
    written = measured(*unit_model(speech, units, "--valid", speech / "text.txt", *settings("ngram.order=3")))
    assert written["sentences"] == 24
    assert 0 < written["valid_nats_a_unit"] < 2  # 16 units or fewer, and six sentences over and over
    fused = measured(*fuse(speech, lists, *on_dev(speech, units)))
    assert fused["model_vocabulary_hash"] == written["vocabulary_hash"]
    assert any(point["lm_weight"] for point in fused["dev"]["decoded"])
    internal = measured(*fuse(speech, lists, *on_dev(speech), *settings("fusion.internal_lm=zero_encoder")))
    assert any(point["internal_lm_weight"] for point in internal["dev"]["decoded"])


def test_models_of_units_that_cannot_be(speech, tmp_path):
    (tmp_path / "empty.txt").write_text("\n...\n")
    transformer = ["--set", "kind=transformer"]
    for options, message in [
        (["--set", "architecture.width=16"], "architecture: unknown key"),
        ([*transformer, "--model", speech / "words"], "is of kind 'ngram'"),
        ([*transformer, "--set", "transformer.languages.codes=[en, es]"], "no words and thus no languages"),
        (["--input", "-"], "is a stream, and this option takes none"),
        (["--input", tmp_path / "empty.txt"], "holds no word"),
    ]:
        assert message in refusal(*unit_model(speech, tmp_path / "units", *options))
        assert not (tmp_path / "units").exists()


def test_refused(speech, tmp_path):
    weights = ["--set", "fusion.lm_weights=[0.5]"]
    for options, message in [
        (weights, "'fusion.lm_weights=[0.5]' has no use with the files that are given"),
        (["--training-text", speech / "text.txt"], "--training-text has no use without --model"),
        (["--model", speech / "words"], "they are never tuned on test"),
        ([*on_dev(speech), "--weights", speech / "text.txt"], "to tune them, or --weights FILE alone"),
        ([*on_dev(speech), "--set", "search.beam_width=0"], "search.beam_width"),
        ([*on_dev(speech), "--test-manifest", speech / "dev.jsonl"], "5 utterances of"),
    ]:
        assert message in refusal(*fuse(speech, tmp_path / "lists.jsonl", *options))
        assert not (tmp_path / "lists.jsonl").exists()


def test_what_is_not_counted_is_said(speech, tmp_path):
    """One utterance of test was never encoded, one reference holds no word; on dev as well."""
    for part in ("dev", "test"):
        first, *others = map(json.loads, (speech / f"{part}.jsonl").read_text().splitlines())
        absent = {"utterance_id": "absent", "audio": "absent.wav", "text": "a dog and a cat"}
        write_records(tmp_path / f"{part}.jsonl", [first | {"text": "..."}, *others, absent])
    manifests = ["--test-manifest", tmp_path / "test.jsonl", "--dev-manifest", tmp_path / "dev.jsonl"]
    document = report(*fuse(speech, tmp_path / "lists.jsonl", *on_dev(speech), *manifests))
    found = document["measured"]
    assert (found["utterances"], found["missing_hypotheses"], found["empty_references"]) == (6, 1, 1)
    assert found["deletions"] >= 5
    assert (found["dev"]["empty_references"], found["dev"]["not_encoded"]) == (1, 1)
    assert [line for line in document["warnings"] if "edge" not in line and "synthesised" not in line] == [
        "1 of 6 utterances have no hypothesis; their words are deleted",
        "1 references hold no word after normalisation; words recognised there are insertions",
        "1 development references hold no word; words recognised there are insertions",
        "1 development references have no encoded speech; they are left out",
    ]
