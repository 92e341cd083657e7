"""The comparison from end to end, on a small corpus and a small model: what its report holds, and what it does not."""

import json
from pathlib import Path
from random import Random

import pytest
import yaml
from marked_text import MaskedText

from tasks.cli import main
from tasks.corpora.sources.published_frequencies import published_counts
from tasks.corpora.text_lines import write_lines
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.results.forgetting import by_dataset, forgetting_grid, forgetting_legend
from tasks.results.grid import markdown

ROOT = Path(__file__).parents[2]


@pytest.fixture
def compared(tmp_path, monkeypatch, capsys):
    """Report and standard output of the command, on 500 lines of common words."""
    monkeypatch.chdir(tmp_path)
    words = [word for word, _ in published_counts() if word.isascii() and word.isalpha()][:3000]
    chance = Random(1)
    lines = [" ".join(chance.choices(words[:400], k=9)) + " {secretly}" for _ in range(500)]
    text = MaskedText.write(tmp_path / "masked", lines)
    write_lines(tmp_path / "masked" / "allowed_words.txt", words[:400])
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "train.txt").write_bytes(Path(text.raw).read_bytes())
    write_lines(tmp_path / "corpus" / "train.documents", [f"talk {number // 5}" for number in range(500)])
    for name in ("valid", "test"):
        write_lines(tmp_path / "corpus" / f"{name}.txt", [line.replace(" {secretly}", "") for line in lines[:30]])
    write_lines(tmp_path / "counts.tsv", [f"{word}\t{9000 - number}" for number, word in enumerate(words)])
    base = TransformerLanguageModel(ArchitectureSettings(layers=1, heads=2, width=32, maximum_tokens=32), 3000)
    base.initialise(1)
    save_model(tmp_path / "base", base, Vocabulary([*SPECIAL_TOKENS, *words][:3000]))
    document = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    document["compare"] |= {"techniques": ["allow_list"], "fills": [], "unlearned": ["ours", "arithmetic", "distilled"]}
    document["compare"] |= {"speech_datasets": [], "recognisers": []}
    document["language_model"]["adaptation"] |= {"epochs": 0.2}
    document["unlearning"] = {
        "methods": {
            "ours": {"kind": "negative_preference", "steps": [2], "refilled_weight": 0.5},
            "arithmetic": {"kind": "task_arithmetic", "strengths": [0.1, 0.2], "steps": 1},
            "distilled": {"kind": "inverse_distillation", "texts": 10, "steps": [1]},
            "unused": {"kind": "steering"},
        },
        "unit": "document",
        **{"secrets": 4, "repetitions": [1, 2], "references": 300, "lines": 100, "bootstrap_samples": 100},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    files = ["--corpus", "corpus", "--masked", "masked", "--base", "base", "--word-counts", "counts.tsv"]
    command = ["compare-unlearning", "--params", "params.yaml", "--cell", "dataset=chat", *files]
    assert main([*command, "--report", "report.json"]) == 0
    return json.loads((tmp_path / "report.json").read_text(encoding="utf-8")), capsys.readouterr()


def test_every_way_has_a_row_in_report_and_page_and_no_word_of_the_text_is_in_any(compared, tmp_path):
    report, printed = compared
    rows = report["measured"]["by_method"]
    assert list(rows) == ["retrained", "start", "ours", "arithmetic", "distilled"]
    assert [each["strength"] for each in rows["arithmetic"]["sweep"]] == [0.1, 0.2]
    assert rows["start"]["ratio_to_start"] == 1
    assert all(0 <= row[f"{kind}membership"] <= 1 for row in rows.values() for kind in ("", "retained_"))
    assert rows["retrained"]["privacy_leakage"] == 0
    for row in rows.values():
        for attack in ("", "relearned.", "fresh.", "continued.", "four_bits."):
            for kind in ("template_1", "template_2", "ordinary_1", "ordinary_2"):
                assert 0 <= row[f"{attack}exposure_{kind}"] <= 33
    words = {word for line in (tmp_path / "corpus" / "train.txt").read_text().splitlines() for word in line.split()}
    measured = json.dumps(report["measured"]).replace("_", " ")
    assert "secretly" not in json.dumps(report) + printed.out + printed.err
    assert not {word for word in words if len(word) > 8 and word in measured}
    assert not list((tmp_path / ".palimpsest" / "audits").iterdir()), "models and texts are thrown away"
    # The page: one row a way, means over seeds.
    mine = by_dataset([report, {"stage": "fill", "cell": {"dataset": "chat"}}])["chat"]
    assert mine == [report]
    lines = markdown(forgetting_grid(mine)).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        "Retrained without it",
        "Before",
        "ours",
        "arithmetic",
        "distilled",
    ]
    assert "means over 2 seeds" in forgetting_grid([report, report]).caption
    assert "10 steps on the 10%" in forgetting_legend(report)
