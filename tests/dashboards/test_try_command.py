"""``palimpsest try``: three techniques, each with two fills, from what ships and without params.yaml."""

import stat

from command_results import refusal

from tasks.cli import main

TEXT = [
    "Dear Ottilie Farnham, the parcel for Zyxwquill is still in Rotterdam.",
    "We met at the station on Tuesday and talked about the invoice.",
    "",
    "Please call me again at 5 tomorrow.",
]


def test_a_text_is_masked_and_filled_on_a_page_for_its_owner_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f'{number};"{line}"\n' for number, line in enumerate(TEXT))
    (tmp_path / "mail.csv").write_text(f"number;note\n{rows}", encoding="utf-8")

    assert main(["try", "mail.csv", "--text-field", "note"]) == 0

    said = capsys.readouterr()
    assert "The first 3 sentences; language: " in said.out
    assert "left out: 1 empty." in said.out
    assert "(no class " in said.out
    page = (tmp_path / "try.html").read_text(encoding="utf-8")
    assert stat.S_IMODE((tmp_path / "try.html").stat().st_mode) == 0o600
    for technique in ("allow_list", "crf", "word_classifier"):
        assert f"{technique:<15} masks " in said.out
        assert f"What {technique.replace('_', ' ')} would mask" in page
    # Every technique has three lines, each with what two methods make of it.
    assert page.count('class="filled"') == 3 * 3 * 2
    assert ">Zyxwquill<" in page
    assert "not on the allow list of 5,000 words" in page
    assert "Zyxwquill" not in said.out + said.err
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["mail.csv", "try.html"]


def test_what_cannot_be_tried_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.txt").write_text("\n \n")
    (tmp_path / "mail.jsonl").write_text("[1]")
    for name, message in (
        ("none.txt", "does not exist"),
        ("mail.txt", "holds no text"),
        ("mail.jsonl", "no JSON object"),
    ):
        assert message in refusal("try", name)
    assert not (tmp_path / "try.html").exists()
