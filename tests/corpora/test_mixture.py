import pytest

from tasks.corpora.division import divide
from tasks.corpora.settings import CleaningSettings
from tasks.corpora.sources.mixture import AnyCorpus
from tasks.errors import ParameterError
from tasks.settings.checks import check_settings


def settings_of(folder, *names, **more):
    values = {"kind": "mixture", "source": str(folder), "of": [{"kind": "files", "source": str(n)} for n in names]}
    return check_settings(AnyCorpus, {**values, **more}, "generic")


@pytest.fixture
def folder(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "sea.txt").write_text("".join(f"the ship number {n} sails away\n" for n in range(30)))
    (raw / "bank.txt").write_text(
        "".join(f"the bank number {n} pays well\n" for n in range(20)) + "the ship number 3 sails away\n"
    )
    return raw


def test_all_sources_are_there_and_no_sentence_twice(folder, tmp_path):
    settings = settings_of(folder, folder / "sea.txt", folder / "bank.txt")
    cleaning = CleaningSettings(valid_sentences=5, test_sentences=5, seed=1)
    tally = divide(settings.open(), cleaning, tmp_path / "out", private=False, name="generic")
    lines = "".join((tmp_path / "out" / f"{part}.txt").read_text() for part in tally.sentences).splitlines()
    assert len(lines) == len(set(lines)) == 50
    assert tally.sentences == {"train": 40, "valid": 5, "test": 5}
    assert sum("bank" in line for line in lines) == 20


def test_parts_of_a_source_stay_and_the_other_is_divided(folder, tmp_path):
    given = folder / "given"
    given.mkdir()
    for part in ("train", "valid", "test"):
        (given / f"{part}.txt").write_text(f"a sentence of the {part} part\n")
    settings = settings_of(folder, given, folder / "sea.txt")
    cleaning = CleaningSettings(valid_sentences=5, test_sentences=5, seed=1)
    divide(settings.open(), cleaning, tmp_path / "out", private=False, name="generic")
    for part in ("train", "valid", "test"):
        assert f"a sentence of the {part} part" in (tmp_path / "out" / f"{part}.txt").read_text().splitlines()


def test_a_source_outside_is_refused(folder, tmp_path):
    with pytest.raises(ParameterError, match=r"neither source .* nor inside it"):
        settings_of(folder, tmp_path / "elsewhere.txt")


def test_a_cleaning_that_would_have_no_effect_is_refused(folder):
    of = [{"kind": "files", "source": str(folder / "sea.txt"), "cleaning": {"minimum_words": 3}}]
    with pytest.raises(ParameterError, match=r"of\.0\.cleaning has no effect"):
        settings_of(folder, of=of)
