"""Transcripts in the form of LDC2004T19, as its readme shows it; both ways of transcription."""

import pytest

from tasks.corpora.sources.fisher import FisherCorpus
from tasks.errors import CorpusError


def opened(source, **settings):
    return FisherCorpus(kind="fisher", source=source, **settings).open()


LDC = """# fe_03_00001.sph
# Transcribed at the LDC

3.76 5.54 A: and i generally prefer

5.82 6.48 A: eating at home

7.92 9.52 B: hi my name is andy

84.86 87.33 A: who turned me onto this he works for (( )) and he

90.00 91.20 B: [laughter]

92.10 93.45 A: the f._b._i. called [noise] me

"""
BBN = """# fe_03_00092.sph
# Transcribed by BBN/WordWave

0.00 1.21 B: hello

12.39 14.07 B: (( oh yeah ))

"""


def as_shipped(transcript):
    """A space ends every utterance in the LDC's files."""
    return "".join(f"{line} \n" if ": " in line else f"{line}\n" for line in transcript.splitlines())


@pytest.fixture
def releases(tmp_path):
    for release, number, text in (
        ("LDC2004T19/fe_03_p1_tran", "00001", LDC),
        ("LDC2005T19/fe_03_p2_tran", "05851", BBN),
    ):
        folder = tmp_path / release / "data" / "trans" / number[:3]
        folder.mkdir(parents=True)
        (folder / f"fe_03_{number}.txt").write_text(as_shipped(text))
        (tmp_path / release / "doc").mkdir()
        (tmp_path / release / "doc" / "fe_03_readme.tbl").write_text("no transcript")
    return tmp_path


def test_calls_are_documents_without_comments_and_sounds(releases):
    documents = list(opened(str(releases)).documents())
    assert [document.texts for document in documents] == [
        ["and i generally prefer", "eating at home", "hi my name is andy", "the f.b.i. called   me"],
        ["hello"],
    ]
    assert [dict(document.left_out) for document in documents] == [{"unclear": 1, "no_speech": 1}, {"unclear": 1}]


def test_guesses_of_the_transcriber_can_stay_but_gaps_do_not(releases):
    documents = list(opened(str(releases), unclear="keep").documents())
    assert documents[1].texts == ["hello", "oh yeah"]
    assert documents[0].left_out["unclear"] == 1


def test_what_is_no_transcript_is_said_without_its_text(releases, tmp_path):
    with pytest.raises(CorpusError, match="put the folders of LDC2004T19 and LDC2005T19 there"):
        opened(str(tmp_path / "nothing"))
    with pytest.raises(CorpusError, match=r"holds no fe_03_\*\.txt"):
        opened(str(releases / "LDC2004T19" / "fe_03_p1_tran" / "doc"))
    path = releases / "LDC2004T19" / "fe_03_p1_tran" / "data" / "trans" / "000" / "fe_03_00001.txt"
    path.write_text(LDC + "L: secret text\n")
    with pytest.raises(CorpusError, match="line 16 is no utterance") as caught:
        list(opened(str(releases)).documents())
    assert "secret" not in str(caught.value)


def test_the_same_call_twice_is_refused(releases):
    (releases / "copy").mkdir()
    (releases / "copy" / "fe_03_00001.txt").write_text(LDC)
    with pytest.raises(CorpusError, match=r"holds 'fe_03_00001\.txt' twice"):
        opened(str(releases))
