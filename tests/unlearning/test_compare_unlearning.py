"""The comparison from end to end, on a small corpus and a small model: what its report holds, and what it does not."""

import json
import shutil
from random import Random

from changed_parameters import parameters, write_parameters
from made_up_words import made_up_words
from marked_text import MaskedText

from tasks.cli import main
from tasks.corpora.text_lines import write_lines
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.results.forgetting import by_dataset, forgetting_grid, forgetting_legend
from tasks.results.grid import markdown


def fill(folder, lines, words):
    """A private corpus of these lines, in documents of five, its masked text, a model, and counts of generic words."""
    text = MaskedText.write(folder / "masked", [f"{line} {{secretly}}" for line in lines])
    write_lines(folder / "masked" / "allowed_words.txt", words[:400])
    (folder / "corpus").mkdir()
    shutil.copy(text.raw, folder / "corpus" / "train.txt")
    write_lines(folder / "corpus" / "train.documents", [f"talk {number // 5}" for number in range(len(lines))])
    for name in ("valid", "test"):
        write_lines(folder / "corpus" / f"{name}.txt", lines[:30])
    write_lines(folder / "counts.tsv", [f"{word}\t{9000 - number}" for number, word in enumerate(words)])
    base = TransformerLanguageModel(ArchitectureSettings(layers=1, heads=2, width=16, maximum_tokens=32), 1000)
    base.initialise(1)
    save_model(folder / "base", base, Vocabulary([*SPECIAL_TOKENS, *words][:1000]))


def write_changed_parameters():
    document = parameters()
    adaptation = document["language_model"]["adaptation"] | {"epochs": 0.2}
    ways = {"techniques": ["allow_list"], "fills": [], "unlearned": ["ours", "arithmetic"]}
    methods = {
        "ours": {"kind": "negative_preference", "steps": [2], "refilled_weight": 0.5},
        "arithmetic": {"kind": "task_arithmetic", "strengths": [0.1, 0.2], "steps": 1},
        "unused": {"kind": "steering"},
    }
    sizes = {"secrets": 4, "repetitions": [1, 2], "references": 255, "lines": 40, "bootstrap_samples": 100}
    return write_parameters(
        compare=document["compare"] | ways | {"speech_datasets": [], "recognisers": []},
        language_model=document["language_model"] | {"adaptation": adaptation},
        unlearning={"methods": methods, "unit": "document", **sizes},
    )


def test_every_way_has_a_row_in_report_and_page_and_no_word_of_the_text_is_in_any(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words, chance = made_up_words(1000), Random(1)
    fill(tmp_path, [" ".join(chance.choices(words[:400], k=9)) for _ in range(200)], words)
    params = write_changed_parameters()
    files = ["--corpus", "corpus", "--masked", "masked", "--base", "base", "--word-counts", "counts.tsv"]
    command = ["compare-unlearning", "--params", params, "--cell", "dataset=chat", *files]
    assert main([*command, "--report", "report.json"]) == 0
    report, printed = json.loads((tmp_path / "report.json").read_text(encoding="utf-8")), capsys.readouterr()

    rows = report["measured"]["by_method"]
    assert list(rows) == ["retrained", "start", "ours", "arithmetic"]
    assert [each["strength"] for each in rows["arithmetic"]["sweep"]] == [0.1, 0.2]
    assert rows["start"]["ratio_to_start"] == 1
    assert all(0 <= row[f"{kind}membership"] <= 1 for row in rows.values() for kind in ("", "retained_"))
    assert rows["retrained"]["privacy_leakage"] == 0
    for row in rows.values():
        for attack in ("", "relearned.", "fresh.", "continued.", "four_bits."):
            for kind in ("template_1", "template_2", "ordinary_1", "ordinary_2"):
                assert 0 <= row[f"{attack}exposure_{kind}"] <= 33
    private = set((tmp_path / "corpus" / "train.txt").read_text().split())
    assert not [word for word in private if word in json.dumps(report) + printed.out + printed.err]
    assert not list((tmp_path / ".palimpsest" / "audits").iterdir()), "models and texts are thrown away"
    # The page: one row a way, means over seeds.
    mine = by_dataset([report, {"stage": "fill", "cell": {"dataset": "chat"}}])["chat"]
    assert mine == [report]
    ways = [line.split("|")[1].strip() for line in markdown(forgetting_grid(mine)).splitlines()[2:]]
    assert ways == ["Retrained without it", "Before", "ours", "arithmetic"]
    assert "means over 2 seeds" in forgetting_grid([report, report]).caption
    assert "10 steps on the 10%" in forgetting_legend(report)
