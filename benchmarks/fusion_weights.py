"""How far tuning noise moves differences between word error rates, for several ways to tune the weights of fusion.

    python -m benchmarks.fusion_weights --speech data/private/encoded_speech/chat --output fusion.json \\
        --models models/pretrained data/private/models/chat/oracle-1 models/adapted/chat/allow_list/*

In a project whose run is finished. Draws of dev are draws of all utterances only where there are many: give more
(--speech) than the experiment tunes on. With each language model, dev and test are decoded at a few weights; the
n-best lists say how many words each utterance gets wrong at each point of the grid. Then dev is drawn again and again,
each way tunes on the draw, and test says the word error rates (of the lists, whose level is lower than a decoding's).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.records.stage_report import environment, write_json
from tasks.speech.fusion.fused_model import FusedModel
from tasks.speech.fusion.shallow_fusion import FusionWeights
from tasks.speech.fusion.transcribed_speech import TranscribedSpeech, errors_of_units, read_transcribed
from tasks.speech.fusion.tuning import ListErrors, grid_of, mean_of_best
from tasks.speech.recogniser.folder import load_recogniser
from tasks.speech.recogniser.recogniser import Recogniser
from tasks.speech.rescoring.settings import FusionSettings, SearchSettings
from tasks.speech.search.beam_search import recognise
from tasks.torch_setup import set_up_torch

ORACLE, PRETRAINED = "oracle-1", "pretrained"
DECODED = (FusionWeights(0.5, 2.0), FusionWeights(0.8, 3.0), FusionWeights(0.7, 1.0), FusionWeights(0.3, 1.0))
"""Weights that dev is decoded with; test only with the first two."""
DRAWS, RESAMPLES = 300, 40
SETTINGS = FusionSettings()


def list_errors(
    model: FusedModel, speech: TranscribedSpeech, recogniser: Recogniser, points: Sequence[FusionWeights]
) -> np.ndarray:
    """Word errors (P, U) at each point of the grid, by the lists of decodings at ``points``."""
    references = [speech.references[name] for name in speech.encoded.utterance_ids]
    lists = ListErrors(lambda found: errors_of_units(found, references, recogniser.units), normalised=True)
    for weights in points:
        lists.add(recognise(recogniser, speech.frames, SearchSettings(), model.fusion(weights)))
    return lists.errors(grid_of(SETTINGS))


def compared(dev: dict[str, np.ndarray], test: dict[str, np.ndarray], words: int, size: int) -> list[dict[str, Any]]:
    """For each way to tune on ``size`` utterances: differences to Oracle, in points, over draws of dev."""
    points = grid_of(SETTINGS)
    places = np.array([(point.lm_weight, point.insertion_bonus) for point in points])
    adapted = [name for name in dev if name != PRETRAINED]
    shared = {"each model its own": None, "pretrained model": [PRETRAINED], "Oracle": [ORACLE],
              "all models, errors added up": list(dev), "adapted models, errors added up": adapted}  # fmt: skip
    generator = np.random.default_rng(1)
    draws = [generator.integers(0, dev[ORACLE].shape[1], size) for _ in range(DRAWS)]

    def rate(name: str, tuned_on: Sequence[str], draw: np.ndarray, resamples: int) -> float:
        chosen, _ = mean_of_best(points, sum(dev[one][:, draw] for one in tuned_on), resamples)  # type: ignore[arg-type]
        apart = np.abs(places - (chosen.lm_weight, chosen.insertion_bonus)) / (0.1, 0.5)
        return 100 * float(test[name][apart.sum(axis=1).argmin()].sum()) / words

    rows = []
    for rule, resamples in (("best point", 0), ("mean over resamples", RESAMPLES)):
        for title, tuned_on in shared.items():
            rates = {one: np.array([rate(one, tuned_on or [one], draw, resamples) for draw in draws]) for one in dev}
            apart = {one: rates[one] - rates[ORACLE] for one in adapted if one != ORACLE}
            rows.append(
                {
                    "tuned_with": title,
                    "rule": rule,
                    "dev_utterances": size,
                    "wer_of_adapted": round(float(np.mean([rates[one].mean() for one in adapted])), 2),
                    "difference_to_oracle": {one: round(float(values.mean()), 2) for one, values in apart.items()},
                    "deviation": {one: round(float(values.std()), 2) for one, values in apart.items()},
                    "worse_than_oracle": {one: round(float((values > 0).mean()), 2) for one, values in apart.items()},
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fusion_weights", description=__doc__)
    parser.add_argument("--recogniser", default="models/recogniser")
    parser.add_argument("--speech", type=Path, required=True, help="folder with dev.safetensors and test.safetensors")
    parser.add_argument("--references", type=Path, help="folder with dev/ and test/ manifests (default: beside it)")
    parser.add_argument(
        "--models", nargs="+", required=True, help="folders of language models, Oracle's and the pretrained among them"
    )
    parser.add_argument("--dev-utterances", type=int, nargs="+", default=[150, 300])
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    set_up_torch(1)
    recogniser = load_recogniser(options.recogniser)
    manifests = options.references or Path("data/private/speech") / options.speech.name
    dev, test = (
        read_transcribed(
            str(options.speech / f"{part}.safetensors"), str(manifests / part / "manifest.jsonl"), recogniser
        )
        for part in ("dev", "test")
    )
    of_dev, of_test = {}, {}
    for folder in options.models:
        model, name = FusedModel(folder, None, SETTINGS, recogniser), Path(folder).name
        of_dev[name] = list_errors(model, dev, recogniser, DECODED)
        of_test[name] = list_errors(model, test, recogniser, DECODED[:2])
    words = sum(len(test.references[name].split()) for name in test.encoded.utterance_ids)
    rows = [row for size in options.dev_utterances for row in compared(of_dev, of_test, words, size)]
    drawn = {"drawn_from": len(dev.encoded.utterance_ids), "draws": DRAWS, "resamples": RESAMPLES}
    write_json(options.output, {"environment": environment(), **drawn, "rows": rows})


if __name__ == "__main__":
    main()
