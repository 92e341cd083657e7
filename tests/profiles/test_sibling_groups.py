"""Groups of ``dvc.yaml`` that do the same for another kind of filler: nothing but their dimensions is their own."""

import json
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DIMENSIONS = {
    "with_language_model": {"methods": "language_model_methods"},
    "large": {"methods": "large_methods", "fillers": "large_fillers", "techniques": "large_techniques"},
    "tuned": {"methods": "tuned_methods", "fillers": "tuned_fillers"},
}
GROUPS = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


@pytest.mark.parametrize("step", ["adapt", "evaluate", "recognise", "rescore"])
@pytest.mark.parametrize("kind", DIMENSIONS)
def test_what_follows_a_fill_is_the_same_for_all_kinds_of_fillers(step: str, kind: str) -> None:
    assert renamed(f"{step}_filled", kind) == GROUPS[f"{step}_{kind}"]


def test_large_fillers_are_made_ready_and_fill_as_others_do() -> None:
    assert renamed("fill", "large") == GROUPS["fill_large"]
    assert renamed("train_filler", "large") == GROUPS["train_filler_large"]


def renamed(group: str, kind: str) -> dict[str, object]:
    text = yaml.safe_dump(GROUPS[group])
    for old, new in DIMENSIONS[kind].items():
        text = text.replace(f"compare.{old}", f"compare.{new}")
    changed: dict[str, object] = yaml.safe_load(text)
    return changed


def test_examples_of_tuned_and_of_large_fillers_differ_in_names_alone() -> None:
    text = json.dumps(GROUPS["examples_tuned"])
    folder = "models/tuned_fillers/${item.dataset}/${item.technique}/${item.filler}"
    assert folder in text
    text = text.replace(folder, "models/fillers/${item.filler}").replace(
        "compare.techniques", "compare.large_techniques"
    )
    text = text.replace("tuned_fillers", "large_fillers").replace("tuned_methods", "large_methods")
    expected = GROUPS["examples_large"]
    found = json.loads(text)
    for group in (found, expected):
        group["params"] = sorted(group["params"])
    assert found == expected
