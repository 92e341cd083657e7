import json

import pytest

from tasks.corpora.sidecar import MaskedSpan, read_sidecar, write_sidecar
from tasks.errors import CorpusError

LINES = [[MaskedSpan(0, 3, "PERSON", "allow_list", 'T"m ü', 0)], [], [MaskedSpan(1, 2, "MASK", "x", "\\", 0)]]


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "sidecar.jsonl"
    write_sidecar(path, LINES)
    assert list(read_sidecar(path)) == LINES
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text().splitlines()[1]) == {"line": 2, "spans": []}


@pytest.mark.parametrize("record", ["", "{}", '{"line": 3, "spans": []}', '{"line": 2, "spans": [{"start": 1}]}', "[]"])
def test_a_line_that_is_no_record(tmp_path, record):
    (tmp_path / "sidecar.jsonl").write_text(f'{{"line": 1, "spans": []}}\n{record}\n')
    with pytest.raises(CorpusError, match="line 2 is not a sidecar record"):
        list(read_sidecar(tmp_path / "sidecar.jsonl"))


RIGHT = {"start": 0, "end": 3, "label": "PERSON", "source": "x", "original": "Tom", "marker": 0}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("original", None, "'original' is no text"),
        ("source", 5, "'source' is no text"),
        ("label", None, "'label' is no text"),
        ("label", "PERSONS", "'label' 'PERSONS' is not known .did you mean 'PERSON'"),
        ("label", "NAME", "'label' 'NAME' is not known.*allowed: MASK, PERSON, "),
        ("start", "0", "'start' is not a whole number"),
        ("end", 3.0, "'end' is not a whole number"),
        ("marker", True, "'marker' is not a whole number"),
        ("marker", -1, "'marker' is not a whole number from 0"),
        ("start", 4, "'end' 3 is before 'start' 4"),
    ],
)
def test_a_field_that_cannot_be(tmp_path, field, value, message):
    records = [{"line": 1, "spans": [RIGHT]}, {"line": 2, "spans": [RIGHT, {**RIGHT, field: value}]}]
    (tmp_path / "sidecar.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(CorpusError, match=f"line 2 is not a sidecar record of line 2: {message}"):
        list(read_sidecar(tmp_path / "sidecar.jsonl"))
