"""How far tuning noise moves differences between word error rates, for several ways to tune the weights of fusion.

    python -m benchmarks.fusion_weights --output fusion.json --speech data/private/encoded_speech/chat \\
        --references data/private/speech/chat --scores here=results/scores/chat other=../other/results/scores/chat \\
        --models models/pretrained data/private/models/chat/oracle-1 models/adapted/chat/allow_list/*

In a project whose run is finished; the stored results drew dev from 450 utterances. With each language model, dev and
test are decoded at a few weights; the n-best lists say how many words of each utterance are wrong at each point of the
grid. Dev is drawn again and again, and each way tunes on the draw. Test says the word error rates: of the lists, which
hold the best of several decodings and so are 1 to 2 points below those of one.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.records.stage_report import environment, write_json
from tasks.speech.fusion.scorers import fusion_scorers
from tasks.speech.fusion.tuning import DevLists, Point, grid_of
from tasks.speech.recogniser.encoded_speech import TranscribedSpeech, read_transcribed
from tasks.speech.recogniser.folder import load_recogniser
from tasks.speech.recogniser.recogniser import Recogniser
from tasks.speech.rescoring.settings import FusionSettings, TuneFusionSettings
from tasks.speech.rescoring.weight_grid import mean_of_best
from tasks.speech.word_errors.error_counts_file import read_errors
from tasks.speech.word_errors.word_errors import ALL, MASKED, ErrorTable, mean_over_seeds, paired_difference_over_seeds
from tasks.torch_setup import set_up_torch

ORACLE, PRETRAINED = "oracle-1", "pretrained"
DECODED = ((0.5, 2.0, 0.0), (0.8, 3.0, 0.0), (0.7, 1.0, 0.0), (0.3, 1.0, 0.0))
"""Weights that dev is decoded with; test only with the first two."""
DRAWS, RESAMPLES, DEV_UTTERANCES = 300, 40, (150, 300)
SETTINGS = FusionSettings()


def list_errors(model: str, speech: TranscribedSpeech, recogniser: Recogniser, points: Sequence[Point]) -> np.ndarray:
    """Word errors (P, U) at each point of the grid, by the lists of decodings at ``points``."""
    scorers, _ = fusion_scorers(model, SETTINGS.internal_lm, recogniser)
    lists = DevLists(scorers, recogniser, speech)
    for point in points:
        lists.decode(point, TuneFusionSettings())
    return lists.errors(grid_of(SETTINGS))


def compared(dev: dict[str, np.ndarray], test: dict[str, np.ndarray], words: int, size: int) -> list[dict[str, Any]]:
    """For each way to tune on ``size`` utterances: differences to Oracle, in points, over draws of dev."""
    places = np.array([point[:2] for point in grid_of(SETTINGS)])
    adapted = [name for name in dev if name != PRETRAINED]
    shared = {"each model its own": None, "pretrained model": [PRETRAINED], "Oracle": [ORACLE],
              "all models, errors added up": list(dev), "adapted models, errors added up": adapted}  # fmt: skip
    generator = np.random.default_rng(1)
    draws = [generator.integers(0, dev[ORACLE].shape[1], size) for _ in range(DRAWS)]

    def rate(name: str, tuned_on: Sequence[str], draw: np.ndarray, resamples: int) -> float:
        chosen, _ = mean_of_best(places, sum(dev[one][:, draw] for one in tuned_on), resamples, 2)  # type: ignore[arg-type]
        apart = np.abs(places - chosen) / (0.1, 0.5)
        return 100 * float(test[name][apart.sum(axis=1).argmin()].sum()) / words

    rows: list[dict[str, Any]] = []
    for rule, resamples in (("best point", 0), ("mean over resamples", RESAMPLES)):
        for title, tuned_on in shared.items():
            rates = {one: np.array([rate(one, tuned_on or [one], draw, resamples) for draw in draws]) for one in dev}
            apart = {one: rates[one] - rates[ORACLE] for one in adapted if one != ORACLE}
            row: dict[str, Any] = {"tuned_with": title, "rule": rule, "dev_utterances": size}
            row["wer_of_adapted"] = round(float(np.mean([rates[one].mean() for one in adapted])), 2)
            for key, number in (
                ("difference_to_oracle", np.mean),
                ("deviation", np.std),
                ("worse_than_oracle", lambda values: (values > 0).mean()),
            ):
                row[key] = {one: round(float(number(values)), 2) for one, values in apart.items()}
            rows.append(row)
    return rows


def paired(folder: Path) -> dict[str, Any]:
    """Of a run: word error rates and differences to Oracle with intervals, in per cent, of all and of masked words."""
    found = {
        path.name.removesuffix(".errors.tsv"): read_errors(path) for path in sorted(folder.glob("**/*.errors.tsv"))
    }

    def numbers(errors: ErrorTable, group: str) -> list[float]:
        rate, *_ = mean_over_seeds([errors], 1000, 0.95, 1, group)
        apart = paired_difference_over_seeds([(errors, found[ORACLE])], 1000, 0.95, 1, group)
        return [round(100 * float(part or 0), 2) for part in (rate, *apart)]

    groups = {"wer": ALL, "masked_by_allow_list": f"{MASKED}:allow_list"}
    return {name: {key: numbers(one, group) for key, group in groups.items()} for name, one in found.items()}


def measured(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Decode with all models, and compare the ways to tune."""
    set_up_torch(1)
    recogniser = load_recogniser(options.recogniser)
    speech, errors = {}, {}
    for part, points in (("dev", DECODED), ("test", DECODED[:2])):
        manifest = options.references / part / "manifest.jsonl"
        speech[part] = read_transcribed(str(options.speech / f"{part}.safetensors"), str(manifest), recogniser)
        errors[part] = {
            Path(folder).name: list_errors(folder, speech[part], recogniser, points) for folder in options.models
        }
    test = speech["test"]
    words = sum(len(test.references[name].split()) for name in test.encoded.utterance_ids)
    return [row for size in DEV_UTTERANCES for row in compared(errors["dev"], errors["test"], words, size)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fusion_weights", description=__doc__)
    parser.add_argument("--recogniser", default="models/recogniser", help="default: %(default)s")
    parser.add_argument("--speech", type=Path, help="folder with dev.safetensors and test.safetensors")
    parser.add_argument("--references", type=Path, help="folder with dev/manifest.jsonl and test/manifest.jsonl")
    parser.add_argument(
        "--models", nargs="+", help="folders of language models, Oracle's and the pretrained among them"
    )
    parser.add_argument("--scores", nargs="+", default=[], metavar="NAME=FOLDER", help="counted errors of whole runs")
    parser.add_argument("--output", type=Path, required=True, help="what is not measured again stays in it")
    options = parser.parse_args()
    document = json.loads(options.output.read_text()) if options.output.exists() else {}
    if options.scores:
        document["runs"] = {one.partition("=")[0]: paired(Path(one.partition("=")[2])) for one in options.scores}
    if options.models:
        document |= {"environment": environment(), "draws": DRAWS, "resamples": RESAMPLES, "rows": measured(options)}
    write_json(options.output, document)


if __name__ == "__main__":
    main()
