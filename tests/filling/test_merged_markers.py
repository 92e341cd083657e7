"""Filling text whose markers were merged or name classes when it was masked."""

import json

import pytest
from stage_commands import settings

from tasks.cli import main
from tasks.corpora.masked_text import count_markers
from tasks.corpora.sidecar import read_sidecar

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


def test_merged_markers_are_one_slot_whatever_the_filler_merges(folder):
    # "Zoltan" is the only word that is not kept, so every slot is filled with it.
    for merge_when_filling in (False, True):
        lines, measured = mask_and_fill(folder, *settings("markers.merge=true"), merge_when_filling=merge_when_filling)
        assert (folder / "masked.txt").read_text() == "we met [MASK], [MASK]\nthe end\n[MASK] [[MASK]] we\n"
        assert lines == ["we met zoltan, zoltan", "the end", "zoltan [zoltan] we"]
        assert (measured["markers"], measured["fills"]) == (4, 4)


def test_class_markers_are_merged_by_class_and_filled_like_others(folder):
    options = [*settings("markers={merge: true, style: class}")]
    lines, measured = mask_and_fill(folder, *options, merge_when_filling=False)
    assert (folder / "masked.txt").read_text() == "we met [MASK] [NUMBER], [MASK]\nthe end\n[MASK] [[MASK]] we\n"
    assert lines == ["we met zoltan zoltan, zoltan", "the end", "zoltan [zoltan] we"]
    assert (measured["markers"], measured["fills"]) == (5, 5)
    lines, measured = mask_and_fill(folder, *options, merge_when_filling=True)
    assert lines[0] == "we met zoltan zoltan, zoltan"
    assert (measured["markers"], measured["fills"]) == (5, 5)


@pytest.mark.parametrize("markers", ["{}", "{merge: true}", "{merge: true, style: class}"])
def test_the_sidecar_has_a_record_for_every_word_and_the_index_of_every_marker(folder, markers):
    mask_and_fill(folder, *settings(f"markers={markers}"), merge_when_filling=True)
    masked = (folder / "masked.txt").read_text().splitlines()
    for line, spans in zip(masked, read_sidecar(folder / "sidecar.jsonl"), strict=True):
        assert sorted({span.marker for span in spans}) == list(range(count_markers(line)))
    assert [len(spans) for spans in read_sidecar(folder / "sidecar.jsonl")] == [6, 0, 2]
