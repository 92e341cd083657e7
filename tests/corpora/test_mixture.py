import pytest

from tasks.corpora.division import divide
from tasks.corpora.settings import CleaningSettings
from tasks.corpora.sources.mixture import AnyCorpus
from tasks.errors import ParameterError
from tasks.settings.checks import check_settings

SHIPS = [f"the ship number {n} sails away" for n in range(30)]
BANKS = [f"the bank number {n} pays well" for n in range(20)]


def settings_of(folder, *names):
    of = [{"kind": "files", "source": str(name)} for name in names]
    return check_settings(AnyCorpus, {"kind": "mixture", "source": str(folder), "of": of}, "generic")


def test_all_sources_are_there_no_sentence_twice_and_given_parts_stay(tmp_path):
    raw = tmp_path / "raw"
    (raw / "given").mkdir(parents=True)
    (raw / "sea.txt").write_text("\n".join(SHIPS))
    (raw / "bank.txt").write_text("\n".join([*BANKS, SHIPS[3]]))
    for part in ("train", "valid", "test"):
        (raw / "given" / f"{part}.txt").write_text(f"a sentence of the {part} part\n")
    settings = settings_of(raw, raw / "sea.txt", raw / "bank.txt", raw / "given")
    cleaning = CleaningSettings(valid_sentences=5, test_sentences=5, seed=1)
    tally = divide(settings.open(), cleaning, tmp_path / "out", private=False, name="generic")
    parts = {part: (tmp_path / "out" / f"{part}.txt").read_text().splitlines() for part in tally.sentences}
    assert {part: len(lines) for part, lines in parts.items()} == tally.sentences
    lines = [line for part in parts.values() for line in part]
    assert sorted(line for line in lines if "part" not in line) == sorted([*SHIPS, *BANKS])
    assert all(f"a sentence of the {part} part" in lines for part, lines in parts.items())


def test_a_source_outside_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"neither source .* nor inside it"):
        settings_of(tmp_path / "raw", tmp_path / "elsewhere.txt")
