"""Each rung of the ladder finds a word that the rung below cannot find."""

from types import SimpleNamespace

import numpy as np
import pytest
from marked_text import MaskedText
from ngram_models import adapted, pretrained
from scripted_model import ScriptedModel

from tasks.audit.attacked import AttackedText, AttackSettings, AuditFiles
from tasks.audit.ladder import better_ranks, ladder
from tasks.corpora.text_lines import write_lines
from tasks.errors import ParameterError
from tasks.records.cell import Cell
from tasks.settings.resources import ResourceSettings

LISTED = ["met", "she", "in", "town", "today", "the", "baker"]
HIDDEN = ["ada", "bea", "cleo", "dora"]
MASKED = [f"she met {{{HIDDEN[n % 4]}}} in town {place}" for n, place in enumerate(["today", "the baker"] * 20)]
"""Every name is equally frequent, and no line says which."""


def without_marks(lines):
    return [line.replace("{", "").replace("}", "") for line in lines]


def attacked_text(folder, monkeypatch, script=lambda words, _: {}, lines=MASKED, **files):
    """The folder of a filled text, and its attack by rungs; the masked language model follows a script."""
    text = MaskedText.write(folder / "masked" / "words", lines)
    write_lines(folder / "masked" / "words" / "allowed_words.txt", LISTED)
    write_lines(folder / "counts.tsv", [*(f"{word}\t900" for word in LISTED), *(f"{name}\t10" for name in HIDDEN)])
    model = ScriptedModel([*LISTED, *HIDDEN], script)
    monkeypatch.setattr("tasks.filling.opened_filler.OpenedFiller", lambda *_: SimpleNamespace(masked=model))
    monkeypatch.setattr("tasks.audit.reidentification.candidate_words", lambda *_, **__: model.candidates())
    monkeypatch.setattr(ScriptedModel, "tokenizer", None, raising=False)
    fill = text.other("fill.txt", without_marks(lines))
    given = {"members": str(text.raw), "text": str(fill), "masked": str(folder / "masked")}
    paths = AuditFiles(**given, word_counts=str(folder / "counts.tsv"), **files)

    def rungs(*names, **settings):
        chosen = AttackSettings(ladder=list(names), places=50, **settings)
        return ladder(AttackedText(chosen, paths, Cell(technique="words"), ResourceSettings(threads=1)))

    return text, rungs


def test_a_model_of_the_raw_text_remembers_the_words(tmp_path, monkeypatch):
    first = zip(["she", "town", "baker", "in"], HIDDEN, ["today", "the baker"] * 2, strict=True)
    lines = [f"{who} met {{{name}}} in town {place}" for who, name, place in first] * 10
    generic = [f"{word} met {name} in town today the baker" for name in HIDDEN for word in LISTED]
    write_lines(tmp_path / "generic.txt", generic)
    models = {
        "base": pretrained(tmp_path, "generic.txt"),
        "raw_model": adapted(tmp_path, "raw", without_marks(lines)),
        "released_model": adapted(tmp_path, "released", [line.split("{")[0] + "ada in town today" for line in lines]),
    }
    _, rungs = attacked_text(tmp_path, monkeypatch, lines=lines, **models)
    found = rungs("released", "raw")
    raw = found["reidentified_raw_1"]
    assert (raw.value, raw.blind < 0.5) == (1, True)
    assert found["reidentified_released_1"].value < 0.5
    assert found["reidentified_raw_gain"].interval[0] > 0.3
    assert "adapted on the released text; a language model adapted on the raw text" in raw.attacker


def test_neighbouring_lines_of_the_document_are_read(tmp_path, monkeypatch):
    lines = [line for name in HIDDEN * 5 for line in (f"the baker met {name}", f"she met {{{name}}} today")]

    def script(words, position):
        near = [word for word in words[max(0, position - 3) : position] if word in HIDDEN]
        return {near[-1]: 0.99} if near else {}

    text, rungs = attacked_text(tmp_path, monkeypatch, script, lines)
    assert rungs("author")["reidentified_author_1"].value < 0.5, "without documents a line has no neighbours"
    documents = text.other("train.documents", [str(n // 2) for n in range(len(lines))])
    monkeypatch.setattr(AuditFiles, "documents", str(documents))
    found = rungs("author")["reidentified_author_1"]
    assert (found.value, found.blind < 0.5) == (1, True)


def test_a_name_is_found_that_only_a_background_document_has(tmp_path, monkeypatch):
    (tmp_path / "known").mkdir()
    write_lines(tmp_path / "known/letter.txt", ["Zebulon is the baker", *["nothing of it"] * 9, "nothing at all"])
    _, rungs = attacked_text(tmp_path, monkeypatch, lines=["the baker met {Zebulon} in town"])
    found = rungs("author", "background", background=str(tmp_path / "known"))
    assert (found["reidentified_author_10"].value, found["reidentified_background_10"].value) == (0, 1)
    assert not any("ebulon" in figure.attacker for figure in found.values())


def test_what_a_rung_lacks_is_named(tmp_path, monkeypatch):
    _, rungs = attacked_text(tmp_path, monkeypatch)
    with pytest.raises(ParameterError, match="rung 'raw' needs the model"):
        rungs("raw")
    with pytest.raises(ValueError, match=r"'raw_text' is no rung.*released, author, background, raw"):
        AttackSettings(ladder=["raw_text"])


def test_a_model_is_used_for_the_half_of_the_lines_whose_other_half_it_helps():
    lines = np.array([1, 1, 2, 3, 4, 4])
    # Lines 1 and 3 are one half, 2 and 4 the other. The model finds a word more on lines 2 and 4, one less on 1 and 3.
    model, without = np.array([9, 9, 1, 2, 1, 7]), np.array([1, 9, 5, 2, 1, 7])
    assert better_ranks(model, without, lines).tolist() == [9, 9, 5, 2, 1, 7]
    assert better_ranks(model, model, lines).tolist() == model.tolist()
    assert better_ranks(np.full(6, 2), without, lines).tolist() == without.tolist()
