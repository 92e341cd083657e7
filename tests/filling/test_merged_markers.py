"""Filling text whose markers were merged or name classes when it was masked."""

import json

import pytest
from stage_commands import settings

from tasks.cli import main

TEXT = "we met Zoltan Kovacs Zsolt 5 7, Ann\nthe end\nZoltan [MASK] we\n"
COUNTS = "we\t9\nmet\t9\nthe\t9\nend\t9\nZoltan\t1\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "list.txt").write_text("we\nmet\nthe\nend\n")
    (tmp_path / "counts.tsv").write_text(COUNTS)
    return tmp_path


def mask_and_fill(folder, *options, merge_when_filling):
    mask = ["--technique", "allow_list", *settings(f"path={folder}/list.txt"), "--input", folder / "text.txt"]
    mask += ["--output", folder / "masked.txt", "--kept-words", folder / "kept.txt"]
    mask += ["--sidecar", folder / "sidecar.jsonl", *options]
    assert main(["mask", *map(str, mask)]) == 0
    fill = ["--method", "unigram", "--word-counts", folder / "counts.tsv", "--kept-words", folder / "kept.txt"]
    fill += ["--input", folder / "masked.txt", "--output", folder / "filled.txt"]
    fill += ["--sidecar", folder / "sidecar.jsonl", "--report", folder / "report.json"]
    fill += settings(f"merge_markers={str(merge_when_filling).lower()}")
    assert main(["fill", *map(str, fill)]) == 0
    lines = (folder / "filled.txt").read_text().lower().splitlines()
    return lines, json.loads((folder / "report.json").read_text())["measured"]


def test_merged_markers_are_one_slot_whatever_the_filler_merges_and_classes_are_kept_apart(folder):
    # "Zoltan" is the only word that is not kept, so every slot is filled with it.
    for markers, masked, fills in (
        ("{merge: true}", "[MASK], [MASK]", "zoltan, zoltan"),
        ("{merge: true, style: class}", "[MASK] [NUMBER], [MASK]", "zoltan zoltan, zoltan"),
    ):
        for merge_when_filling in (False, True):
            options = settings(f"markers={markers}")
            lines, measured = mask_and_fill(folder, *options, merge_when_filling=merge_when_filling)
            assert (folder / "masked.txt").read_text() == f"we met {masked}\nthe end\n[MASK] [[MASK]] we\n"
            assert lines == [f"we met {fills}", "the end", "zoltan [zoltan] we"]
            assert measured["markers"] == measured["fills"] == len(fills.split()) + 2
