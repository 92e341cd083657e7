import json
from pathlib import Path

import pytest

from tasks.cli import main
from tasks.corpora.sidecar import read_sidecar

TEXT = "We met Xavier's cousin, Zoltan, at 5pm.\n\nNothing to see here!\nA literal [MASK] and [PERSON].\n"
MASKED = "We met [MASK]'s [MASK], [MASK], at [MASK].\n\nNothing to see here!\nA literal [[MASK]] and [\\PERSON].\n"
ALLOWED = "we met at nothing to see here a and person literal".split()


@pytest.fixture(autouse=True)
def changed(tmp_path, monkeypatch):
    """Changes the parameters in the current folder, and returns the option that names them."""
    parameters = Path("params.yaml").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def changed(old, new):
        assert old in parameters
        Path("params.yaml").write_text(parameters.replace(old, new, 1), encoding="utf-8")
        return ["--params", "params.yaml"]

    return changed


def mask(text, technique, *options):
    """The masked text and the report's document; other outputs are ``sidecar`` and ``kept``."""
    Path("text").write_text(text, encoding="utf-8")
    files = "--input text --output masked --sidecar sidecar --allowed-words kept --report report.json".split()
    assert main(["mask", "--technique", technique, *options, *files]) == 0
    return Path("masked").read_text(encoding="utf-8"), json.loads(Path("report.json").read_text())


def test_all_outputs():
    Path("list.txt").write_text("\n".join(ALLOWED))
    masked, document = mask(TEXT, "allow_list", "--set", "path=list.txt", "--cell", "dataset=chat")
    assert masked == MASKED
    originals = [[span.original for span in spans] for spans in read_sidecar("sidecar")]
    assert originals == [["Xavier", "cousin", "Zoltan", "5pm"], [], [], ["MASK"]]
    assert json.loads(Path("sidecar").read_text().splitlines()[1]) == {"line": 2, "spans": []}
    assert Path("kept").read_text().splitlines() == sorted(ALLOWED)
    assert [Path(name).stat().st_mode & 0o777 for name in ("masked", "sidecar")] == [0o600] * 2
    measured = document["measured"]
    assert (document["cell"]["dataset"], document["cell"]["technique"]) == ("chat", "allow_list")
    assert (measured["lines"], measured["empty_lines"], measured["masked_lines"]) == (4, 1, 2)
    assert (measured["words"], measured["masked_words"], measured["allowed_words"]) == (16, 5, 11)
    assert measured["masked_fraction"] == 5 / 16
    assert measured["masked_by_class"] == {"MASK": 4, "NUMBER": 1}
    assert "Xavier" not in Path("report.json").read_text()


def test_entity_tagger(capsys):
    text = "Angela Merkel lives in Berlin.\nI like tea.\n"
    masked, document = mask(text, "entity_tagger", "--set", "markers.style=class")
    assert masked == "[PERSON] [PERSON] lives in [LOCATION].\nI like tea.\n"
    assert Path("kept").read_text() == ""
    assert document["measured"]["allowed_words"] is None
    # The entity types in force are printed first.
    first = capsys.readouterr().err.splitlines()[0]
    assert "FAC, GPE, LOC -> LOCATION" in first
    assert "unmasked: LANGUAGE, ORDINAL, PERCENT, QUANTITY; numbers and times in words stay unmasked" in first


def test_markers_come_from_params_and_options_go_before_them(changed):
    section = "allow_list: {kind: allow_list"
    options = changed(section, section + ", markers: {style: class, merge: true}")
    text = "Ask Zoltan Kovacs Zsolt 5 7, 9 ok\n"
    masked, report = mask(text, "allow_list", *options)
    assert masked == "Ask [MASK] [NUMBER], [NUMBER] ok\n"
    (spans,) = read_sidecar("sidecar")
    assert [span.marker for span in spans] == [0, 0, 0, 1, 1, 2]
    assert " ".join(span.original for span in spans) == "Zoltan Kovacs Zsolt 5 7 9"
    assert (report["measured"]["masked_words"], report["measured"]["masked_fraction"]) == (6, 6 / 8)
    assert report["parameters"]["markers"] == {"style": "class", "merge": True}
    masked, report = mask(text, "allow_list", *options, "--set", "markers={style: mask, merge: false}")
    assert masked == "Ask [MASK] [MASK] [MASK] [MASK] [MASK], [MASK] ok\n"
    assert report["parameters"]["markers"] == {"style": "mask", "merge": False}
