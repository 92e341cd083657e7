"""Each rung of the ladder finds a word that the rung below cannot find."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from marked_text import MaskedText
from scripted_model import ScriptedModel

from tasks.audit.attacked import AttackedText, AttackSettings, AuditFiles
from tasks.audit.background import Passages, read_passages
from tasks.audit.ladder import ADDED, ladder
from tasks.audit.rungs import PUBLIC, RUNGS, figure_of, rung_of
from tasks.cli import main
from tasks.corpora.text_lines import write_lines
from tasks.errors import ParameterError
from tasks.parameters.cells_file import NO_FILE, graph_cells
from tasks.parameters.parameter_file import read_parameters
from tasks.records.cell import Cell
from tasks.settings.resources import ResourceSettings

LISTED = ["met", "she", "in", "town", "today", "the", "baker"]
HIDDEN = ["ada", "bea", "cleo", "dora"]
MASKED = [f"she met {{{HIDDEN[n % 4]}}} in town {place}" for n, place in enumerate(["today", "the baker"] * 20)]
"""Every name is equally frequent, and no line says which."""


def attacked_text(folder, monkeypatch, script=lambda words, _: {}, lines=MASKED, **files):
    """A filled text; the masked language model follows a script."""
    text = MaskedText.write(folder / "masked" / "words", lines)
    write_lines(folder / "masked" / "words" / "allowed_words.txt", LISTED)
    write_lines(folder / "counts.tsv", [*(f"{word}\t900" for word in LISTED), *(f"{name}\t10" for name in HIDDEN)])
    fill = text.other("fill.txt", [line.replace("{", "").replace("}", "") for line in lines])
    model = ScriptedModel([*LISTED, *HIDDEN], script)
    monkeypatch.setattr("tasks.filling.opened_filler.OpenedFiller", lambda *_: SimpleNamespace(masked=model))
    monkeypatch.setattr("tasks.filling.masked_lm.candidate_words.candidate_words", lambda *_, **__: model.candidates())
    monkeypatch.setattr(ScriptedModel, "tokenizer", None, raising=False)
    given = {"members": str(text.raw), "text": str(fill), "masked": str(folder / "masked")}
    paths = AuditFiles(**given, word_counts=str(folder / "counts.tsv"), **files)

    def rungs(*names, **settings):
        chosen = AttackSettings(ladder=list(names), places=50, **settings)
        return ladder(AttackedText(chosen, paths, Cell(technique="words"), ResourceSettings(threads=1)))

    return text, rungs


def adapted(folder, name, lines):
    """A trigram model of generic lines, or adapted from that on other lines."""
    write_lines(folder / f"{name}.txt", lines)
    common = ["--input", folder / f"{name}.txt"]
    if name == "base":
        run("count-words", *common, "--output", folder / "words.tsv")
        run("vocabulary", "--word-counts", folder / "words.tsv", "--output", folder / "words.txt")
        run("pretrain", *common, "--vocabulary", folder / "words.txt", "--output", folder / name, "--set", "kind=ngram")
    else:
        run(
            "adapt", *common, "--model", folder / "base", "--output", folder / name, "--set", "ngram.generic_weight=0.5"
        )
    return str(folder / name)


def run(*words):
    assert main([str(word) for word in words]) == 0


def test_a_model_of_the_raw_text_remembers_the_words(tmp_path, monkeypatch):
    lines = [
        f"she met {{{name}}} in town {place}" for name, place in zip(HIDDEN, ["today", "the baker"] * 2, strict=True)
    ]
    lines = [line.replace("she", word) for line, word in zip(lines, ["she", "town", "baker", "in"], strict=True)] * 10
    base = adapted(
        tmp_path, "base", [f"{word} met {name} in town today the baker" for name in HIDDEN for word in LISTED]
    )
    raw = adapted(tmp_path, "raw", [line.replace("{", "").replace("}", "") for line in lines])
    released = adapted(tmp_path, "released", [line.split("{")[0] + "ada in town today" for line in lines])
    _, rungs = attacked_text(tmp_path, monkeypatch, lines=lines, base=base, raw_model=raw, released_model=released)
    found = rungs("released", "raw")
    assert found["reidentified_raw_1"].value == 1
    assert found["reidentified_raw_1"].blind < 0.5
    assert found["reidentified_released_1"].value < 0.5
    assert found["reidentified_raw_gain"].interval[0] > 0.3
    assert (
        "adapted on the released text; a language model adapted on the raw text" in found["reidentified_raw_1"].attacker
    )


def test_neighbouring_lines_of_the_document_are_read(tmp_path, monkeypatch):
    lines = [line for name in HIDDEN * 5 for line in (f"the baker met {name}", f"she met {{{name}}} today")]

    def script(words, position):
        near = [word for word in words[max(0, position - 3) : position] if word in HIDDEN]
        return {near[-1]: 0.99} if near else {}

    text, rungs = attacked_text(tmp_path, monkeypatch, script, lines)
    documents = tmp_path / "corpus"
    documents.mkdir()
    (documents / "train.txt").write_bytes(text.raw.read_bytes())
    write_lines(documents / "train.documents", [str(n // 2) for n in range(len(lines))])
    assert rungs("author")["reidentified_author_1"].value < 0.5, "without documents a line has no neighbours"
    _, rungs = attacked_text(tmp_path, monkeypatch, script, lines)
    monkeypatch.setattr(AuditFiles, "documents", str(documents / "train.documents"))
    found = rungs("author")["reidentified_author_1"]
    assert found.value == 1
    assert found.blind < 0.5


def test_a_name_is_found_that_only_a_background_document_has(tmp_path, monkeypatch):
    lines = ["the baker met {Zebulon} in town"]
    folder = tmp_path / "known"
    folder.mkdir()
    write_lines(folder / "letter.txt", ["Zebulon is the baker", *["nothing of it"] * 9, "nothing at all"])
    _, rungs = attacked_text(tmp_path, monkeypatch, lines=lines)
    found = rungs("author", "background", background=str(folder))
    assert found["reidentified_author_10"].value == 0
    assert found["reidentified_background_10"].value == 1
    assert not any("ebulon" in figure.attacker for figure in found.values())
    passages = Passages(read_passages(str(folder)))
    assert "zebulon" in passages.words_for("Who is the baker?", 1)
    assert passages.words_for("unheard", 1) == {}


def test_the_registry_and_what_a_rung_lacks(tmp_path, monkeypatch):
    assert [add.__name__ for add in ADDED] == list(RUNGS)
    assert [rung_of(figure_of(rung)) for rung in (PUBLIC, *RUNGS)] == [PUBLIC, *RUNGS]
    _, rungs = attacked_text(tmp_path, monkeypatch)
    with pytest.raises(ParameterError, match="rung 'raw' needs the model"):
        rungs("raw")
    assert rungs() == {}
    with pytest.raises(ValueError, match=r"'raw_text' is no rung.*released, author, background, raw"):
        AttackSettings(ladder=["raw_text"])
    with pytest.raises(ValueError, match=r"needs documents; give their folder as audit\.background"):
        AttackSettings(ladder=["background"])


def test_the_stage_depends_on_the_sources_of_its_rungs(tmp_path):
    document = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text(encoding="utf-8"))

    def row(**audit):
        document["audit"] |= audit
        path = tmp_path / "params.yaml"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        cells = graph_cells(read_parameters(path))
        assert cells["audit_oracle"]["chat-oracle-1"]["for_raw"] == NO_FILE
        return cells["audit"]["chat-allow_list-minilm-log_linear-1"]

    sources = ["for_released", "for_background", "for_raw"]
    assert [row()[source] for source in sources] == [NO_FILE] * 3
    found = row(ladder=["raw", "background"], background="data/raw/known")
    assert [found[source] for source in sources] == [NO_FILE, "data/raw/known", "data/private/models/chat/oracle-1"]
    assert found["audit"] == {"raw-model": found["for_raw"]}
