"""'palimpsest fuse': from encoded speech to n-best lists, weights found on dev, and what is refused."""

import json

import pytest
import torch
from command_results import measured, refusal, report, write_records
from stage_commands import settings
from tiny_language_models import save_causal, save_ngram

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
        encoded = EncodedSpeech(recogniser_hash, dict.fromkeys(texts, 0.32), synthetic=True, tensors=frames)
        write_encoded(folder / f"{part}.encoded", encoded)
        lines = [{"utterance_id": name, "audio": f"{name}.wav", "text": text} for name, text in texts.items()]
        write_records(folder / f"{part}.jsonl", lines)
    write_records(folder / "text.txt", SENTENCES * 4)
    save_ngram(folder / "words")
    return folder


@pytest.fixture(scope="module")
def tuned(speech):
    """What was found on dev, with weights in a file."""
    grid = settings("fusion.lm_weights=[0, 0.3, 0.6]", "fusion.insertion_bonuses=[0, 1]")
    return measured(*tune(speech, speech / "weights.json", *grid))


def tune(speech, output, *options, model="words"):
    files = ["--dev", speech / "dev.encoded", "--dev-manifest", speech / "dev.jsonl", "--output", output]
    models = ["--recogniser", speech / "recogniser", "--model", speech / model]
    return ["tune-fusion", *models, *files, "--threads", "1", *options]


def fuse(speech, output, *options):
    files = ["--test", speech / "test.encoded", "--test-manifest", speech / "test.jsonl", "--output", output]
    return ["fuse", "--recogniser", speech / "recogniser", *files, "--threads", "1", *options]


def test_weights_are_found_on_dev_and_test_is_decoded(speech, tuned, tmp_path):
    output, weights = tmp_path / "lists.jsonl", speech / "weights.json"
    tried = {point["lm_weight"] for point in tuned["dev"]["decoded"]}
    assert tuned["lm_weight"] in tried
    assert {0.0, 0.3} <= tried
    assert tuned["dev"]["wer"] <= tuned["dev"]["wer_alone"]
    found = measured(*fuse(speech, output, "--model", speech / "words", "--weights", weights))
    assert (found["utterances"], found["words"]) == (5, 15)
    for name in ("lm_weight", "insertion_bonus", "internal_lm_weight"):
        assert found[name] == tuned[name]
    assert not any(word in json.dumps(found) for word in ('"dog', "cat "))
    assert [nbest.utterance_id for nbest in read_nbest(output)] == [f"test-{index}" for index in range(5)]
    assert {path.stat().st_mode & 0o777 for path in (output, weights)} == {0o600}


def test_the_internal_model_is_subtracted_with_a_weight(speech, tmp_path):
    internal = measured(*tune(speech, tmp_path / "weights", *settings("fusion.internal_lm=zero_encoder")))
    assert any(point["internal_lm_weight"] for point in internal["dev"]["decoded"])


def test_refused(speech, tuned, tmp_path):
    weights, output = speech / "weights.json", tmp_path / "output"
    causal = ["--model", save_causal(tmp_path / "causal", "llama"), "--weights", weights]
    model = ["--model", speech / "words", "--weights"]
    for command, options, message in [
        (fuse, causal, "let it choose among the lists by 'palimpsest rescore'"),
        (fuse, settings("fusion.lm_weights=[0.5]"), "'fusion.lm_weights=[0.5]' has no use with the files"),
        (fuse, ["--weights", weights], "--weights has no use without --model"),
        (fuse, ["--model", speech / "words"], "--model needs weights; give --weights FILE"),
        (fuse, [*model, weights, "--test-manifest", speech / "dev.jsonl"], "5 utterances of"),
        (fuse, [*model, speech / "dev.jsonl"], "is no file of fusion weights"),
        (
            fuse,
            [*model, weights, *settings("fusion.internal_lm=zero_encoder")],
            "fusion.internal_lm 'none', and here it is 'zero_",
        ),
    ]:
        assert message in refusal(*command(speech, output, *options))
        assert not output.exists()


def test_what_is_not_counted_is_said(speech, tmp_path):
    """One utterance of test was never encoded, one reference holds no word."""
    first, *others = map(json.loads, (speech / "test.jsonl").read_text().splitlines())
    absent = {"utterance_id": "absent", "audio": "absent.wav", "text": "a dog and a cat"}
    write_records(tmp_path / "test.jsonl", [first | {"text": "..."}, *others, absent])
    document = report(*fuse(speech, tmp_path / "lists.jsonl", "--test-manifest", tmp_path / "test.jsonl"))
    found = document["measured"]
    assert (found["utterances"], found["missing_hypotheses"], found["empty_references"]) == (6, 1, 1)
    assert found["deletions"] >= 5
    assert document["warnings"] == [
        "1 of 6 utterances have no hypothesis; their words are deleted",
        "1 references hold no word after normalisation; words recognised there are insertions",
        "the speech is synthesised; its word error rates do not hold for recorded speech",
    ]
