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
