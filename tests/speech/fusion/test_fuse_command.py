"""``palimpsest fuse``: from encoded speech to n-best lists, weights found on dev, and what is refused."""

import json
import stat

import pytest
from stage_commands import settings

from tasks.cli import main
from tasks.speech.rescoring.nbest_lists import read_nbest

SENTENCES = ["the dog", "a dog and the cat", "the cat", "then a cat", "and the dog", "a cat and a dog"]


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    """A recogniser with random weights, random frames as speech, and a language model of words."""
    import torch
    from tiny_recogniser import random_recogniser

    from tasks.language_model.encoded_text import encode_text
    from tasks.language_model.ngram.folder import save_new
    from tasks.language_model.ngram.kneser_ney import estimate
    from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
    from tasks.speech.recogniser.encoded_speech import EncodedSpeech, write_encoded
    from tasks.speech.recogniser.folder import save_recogniser

    folder = tmp_path_factory.mktemp("speech")
    recogniser_hash = save_recogniser(folder / "recogniser", random_recogniser(SENTENCES, emits=True))
    generator = torch.Generator().manual_seed(1)
    for part, count in (("dev", 4), ("test", 5)):
        names = [f"{part}-{index}" for index in range(count)]
        frames = {name: torch.randn(8, 16, generator=generator) for name in names}
        encoded = EncodedSpeech(recogniser_hash, dict.fromkeys(names, 0.32), 0.04, synthetic=True, tensors=frames)
        write_encoded(folder / f"{part}.encoded", encoded)
        lines = [
            {"utterance_id": name, "audio": f"{name}.wav", "text": text}
            for name, text in zip(names, SENTENCES, strict=False)
        ]
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "text.txt").write_text("\n".join(SENTENCES * 4) + "\n")
    vocabulary = Vocabulary((*SPECIAL_TOKENS, "a", "and", "cat", "dog", "the", "then"))
    save_new(
        folder / "words", estimate(encode_text(folder / "text.txt", vocabulary), 2, len(vocabulary))[0], vocabulary
    )
    return folder


def command(speech, output, *options, fused=True):
    arguments = ["fuse", "--recogniser", f"{speech}/recogniser", "--test", f"{speech}/test.encoded", "--threads", "1"]
    arguments += ["--test-manifest", f"{speech}/test.jsonl", "--output", f"{output}/lists.jsonl"]
    if fused:
        arguments += ["--dev", f"{speech}/dev.encoded", "--dev-manifest", f"{speech}/dev.jsonl"]
        arguments += ["--model", f"{speech}/words"]
    return [*arguments, *options]


def test_weights_are_found_on_dev_and_test_is_decoded(speech, tmp_path):
    options = settings("fusion.lm_weights=[0, 0.3, 0.6]", "fusion.insertion_bonuses=[0, 1]")
    assert main(command(speech, tmp_path, *options, "--report", f"{tmp_path}/report.json")) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    measured = report["measured"]
    assert (measured["utterances"], measured["words"]) == (5, 15)
    weights = {point["lm_weight"] for point in measured["dev"]["decoded"]}
    assert measured["lm_weight"] in weights
    assert {0.0, 0.3} <= weights
    assert measured["dev"]["wer"] <= measured["dev"]["wer_alone"]
    assert measured["real_time_factor"] == pytest.approx(measured["decode_seconds"] / 1.6)
    assert not any(word in (tmp_path / "report.json").read_text() for word in ('"dog', "cat "))
    lists = read_nbest(tmp_path / "lists.jsonl")
    assert [nbest.utterance_id for nbest in lists] == [f"test-{index}" for index in range(5)]
    assert stat.S_IMODE((tmp_path / "lists.jsonl").stat().st_mode) == 0o600


def test_weights_that_were_tuned_once_decode_other_speech_and_other_models(speech, tmp_path, measured, refusal):
    tune = ["tune-fusion", "--recogniser", f"{speech}/recogniser", "--model", f"{speech}/words", "--threads", "1"]
    tune += ["--dev", f"{speech}/dev.encoded", "--dev-manifest", f"{speech}/dev.jsonl"]
    weights = tmp_path / "weights.json"
    tuned = measured(*tune, "--output", str(weights))
    assert stat.S_IMODE(weights.stat().st_mode) == 0o600
    on_dev = measured(*command(speech, tmp_path))
    lists = (tmp_path / "lists.jsonl").read_bytes()
    given = measured(*command(speech, tmp_path, "--model", f"{speech}/words", "--weights", str(weights), fused=False))
    assert (tmp_path / "lists.jsonl").read_bytes() == lists
    for name in ("lm_weight", "insertion_bonus", "internal_lm_weight"):
        assert given[name] == tuned[name] == on_dev[name]
    assert tuned["dev"]["grid"] == on_dev["dev"]["grid"]
    assert "dev" not in given
    with_model = ["--model", f"{speech}/words", "--weights"]
    for options, message in [
        ([str(tmp_path / "none.json")], "'palimpsest tune-fusion' writes one"),
        ([f"{speech}/dev.jsonl"], "is no file of fusion weights"),
        (
            [str(weights), "--set", "fusion.internal_lm=zero_encoder"],
            "fusion.internal_lm 'none', and here it is 'zero_",
        ),
    ]:
        assert message in refusal(*command(speech, tmp_path, *with_model, *options, fused=False))


def test_a_model_of_the_recognisers_units_is_estimated_and_fused(speech, tmp_path, measured):
    arguments = ["unit-language-model", "--recogniser", f"{speech}/recogniser", "--input", f"{speech}/text.txt"]
    arguments += ["--output", f"{tmp_path}/units", "--valid", f"{speech}/text.txt", "--set", "ngram.order=3"]
    written = measured(*arguments)
    assert written["sentences"] == 24
    assert 0 < written["valid_nats_a_unit"] < 2  # 16 units or fewer, and six sentences over and over
    fused = measured(*command(speech, tmp_path, "--model", f"{tmp_path}/units"))
    assert fused["model_vocabulary_hash"] == written["vocabulary_hash"]
    assert any(point["lm_weight"] for point in fused["dev"]["decoded"])
    internal = measured(*command(speech, tmp_path, "--set", "fusion.internal_lm=zero_encoder"))
    assert any(point["internal_lm_weight"] for point in internal["dev"]["decoded"])


def test_models_of_units_that_cannot_be(speech, tmp_path, refusal):
    (tmp_path / "empty.txt").write_text("\n...\n")
    transformer = ["--set", "kind=transformer"]
    for options, message in [
        (["--set", "architecture.width=16"], "architecture: unknown key"),
        ([*transformer, "--model", f"{speech}/words"], "is of kind 'ngram'"),
        ([*transformer, "--set", "transformer.languages.codes=[en, es]"], "no words and thus no languages"),
        (["--input", "-"], "is a stream, and this option takes none"),
        (["--input", f"{tmp_path}/empty.txt"], "holds no word"),
    ]:
        arguments = ["unit-language-model", "--recogniser", f"{speech}/recogniser", "--input", f"{speech}/text.txt"]
        assert message in refusal(*arguments, "--output", f"{tmp_path}/units", *options)
        assert not (tmp_path / "units").exists()


def test_refused(speech, tmp_path, refusal):
    unused = "'fusion.lm_weights=[0.5]' has no use with the files that are given"
    dev = "give --dev and --dev-manifest to tune them, or --weights FILE alone"
    for options, fused, message in [
        (["--set", "fusion.lm_weights=[0.5]"], False, unused),
        (["--training-text", f"{speech}/text.txt"], False, "--training-text has no use without --model"),
        (["--model", f"{speech}/words"], False, "they are never tuned on test"),
        (["--weights", f"{speech}/text.txt"], True, dev),
        (["--set", "search.beam_width=0"], True, "search.beam_width"),
        (["--test-manifest", f"{speech}/dev.jsonl"], True, "5 utterances of"),
    ]:
        assert message in refusal(*command(speech, tmp_path, *options, fused=fused))
        assert not (tmp_path / "lists.jsonl").exists()


def test_what_is_not_counted_is_said(speech, tmp_path, capsys):
    """One utterance of test was never encoded, one reference holds no word; on dev as well."""
    for part in ("dev", "test"):
        lines = (speech / f"{part}.jsonl").read_text().splitlines()
        first = {**json.loads(lines[0]), "text": "..."}
        absent = {"utterance_id": "absent", "audio": "absent.wav", "text": "a dog and a cat"}
        lines = [json.dumps(first), *lines[1:], json.dumps(absent)]
        (tmp_path / f"{part}.jsonl").write_text("".join(line + "\n" for line in lines))
    manifests = ["--test-manifest", f"{tmp_path}/test.jsonl", "--dev-manifest", f"{tmp_path}/dev.jsonl"]
    assert main(command(speech, tmp_path, *manifests, "--report", "-")) == 0
    captured = capsys.readouterr()
    measured = json.loads(captured.out)["measured"]
    assert (measured["utterances"], measured["missing_hypotheses"], measured["empty_references"]) == (6, 1, 1)
    assert measured["deletions"] >= 5
    assert (measured["dev"]["empty_references"], measured["dev"]["not_encoded"]) == (1, 1)
    assert [line for line in captured.err.splitlines() if "edge" not in line and "synthesised" not in line] == [
        "warning: 1 of 6 utterances have no hypothesis; their words are deleted",
        "warning: 1 references hold no word after normalisation; words recognised there are insertions",
        "warning: 1 development references hold no word; words recognised there are insertions",
        "warning: 1 development references have no encoded speech; they are left out",
    ]
