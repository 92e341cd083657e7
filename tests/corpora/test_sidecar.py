import json

from tasks.corpora.sidecar import MaskedSpan, read_sidecar, write_sidecar

LINES = [[MaskedSpan(0, 3, "PERSON", "allow_list", 'T"m ü', 0)], [], [MaskedSpan(1, 2, "MASK", "x", "\\", 0)]]


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "sidecar.jsonl"
    write_sidecar(path, LINES)
    assert list(read_sidecar(path)) == LINES
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text().splitlines()[1]) == {"line": 2, "spans": []}
