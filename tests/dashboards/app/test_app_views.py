from dataclasses import replace

import pandas as pd
import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest

import dashboards.app.page
from dashboards.app import experiment

PAGE = dashboards.app.page.__file__


@pytest.fixture
def app(in_project):
    experiment._runs.clear()
    experiment._parameters.clear()

    def open_page(**query: str | list[str]) -> AppTest:
        page = AppTest.from_file(PAGE, default_timeout=120)
        for name, value in query.items():
            page.query_params[name] = value
        page.run()
        assert not page.exception
        assert not page.error
        return page

    return open_page


def table_of(page: AppTest) -> pd.DataFrame:
    return page.table[0].value


def test_the_table_has_intervals_and_marks(app):
    found = table_of(app())
    assert list(found.columns) == ["allow list (16.9% masked)", "entity tagger (3.7% masked)"]
    assert found.index.tolist() == ["Pretrained", "Oracle", "Baseline0", "Baseline1", "Top-K", "Sample", "Unigram"]
    assert found.loc["Baseline1"].tolist() == ["427.0 [414, 440]", "207.0 [201, 213]"]
    assert found.loc["Baseline0"].iloc[0] == "624.0 [605, 643] ▲"
    assert found.loc["Sample"].iloc[0] == "273.0 [265, 281] ▼"


def test_ways_to_forget_stand_in_a_view_of_their_own(app):
    found = table_of(app(view="forgetting"))
    assert found.index.tolist() == ["Retrained without it", "Before", "unidetox", "steering"]
    assert found.loc["steering"].iloc[0] == "1.010 [1.010, 1.010]"


def test_the_results_open_with_what_the_report_page_opens_with(app):
    assert [each.value for each in app().success] == [
        "Verdict for chat: mask by the allow list, fill by Sample, minilm."
    ]


def test_nothing_is_shown_before_the_password_is_given(app, monkeypatch):
    monkeypatch.setenv("PALIMPSEST_APP_PASSWORD", "a long password")
    page = app()

    def shown() -> set[str]:
        # Where no settings are read, as here, Streamlit writes out a string that stands on a line of its own.
        return {element.type for element in page.main} - {"main", "markdown"}

    assert shown() == {"text_input"}
    page.text_input[0].set_value("a wrong one")
    page.run()
    assert shown() == {"text_input", "error"}
    page.text_input[0].set_value("a long password")
    page.run()
    assert len(table_of(page)) == 7
    # The password is asked for once, and is not kept.
    page.multiselect(key="technique").set_value(["entity_tagger"])
    page.run()
    assert not page.text_input
    assert len(table_of(page).columns) == 1


def test_filters_leave_what_is_chosen(app):
    page = app()
    page.multiselect(key="technique").set_value(["entity_tagger"])
    page.multiselect(key="method").set_value(["baseline1", "sample"])
    page.run()
    found = table_of(page)
    assert list(found.columns) == ["entity tagger (3.7% masked)"]
    assert found.index.tolist() == ["Baseline1", "Sample"]
    (runs,) = (frame.value for frame in page.dataframe)
    assert runs["method"].tolist() == ["baseline1", "sample"]
    assert runs["perplexity"].tolist() == [207.0, 203.0]


def test_the_address_brings_the_choice_back(app):
    page = app(technique="entity tagger", method=["Baseline1", "Sample"], measure="Perplexity, words of the vocabulary")
    assert page.selectbox(key="measure").value == "perplexity_known"
    found = table_of(page)
    assert found.index.tolist() == ["Baseline1", "Sample"]
    assert found["entity tagger (3.7% masked)"].tolist()[0].startswith("243.0 ")


def test_the_recogniser_alone_stands_in_the_table_of_word_errors(app):
    found = table_of(app(measure="Word error rate, %"))
    assert found.index.tolist()[:3] == ["No language model", "Pretrained", "Oracle"]
    assert found.loc["No language model"].iloc[0].startswith("18.00 [17.00, 19.00]")
    assert found.loc["Oracle"].iloc[0] == "12.00 [11.00, 13.00] ▼"


def test_without_a_technique_the_numbers_stay_and_without_a_run_it_is_said(app):
    page = app()
    page.multiselect(key="technique").set_value([])
    page.run()
    assert not page.exception
    (runs,) = (frame.value for frame in page.dataframe)
    assert runs["method"].tolist() == ["no_language_model", "pretrained", "oracle"]
    page.multiselect(key="method").set_value([])
    page.run()
    assert not page.exception
    assert [info.value for info in page.info] == ["No run is left by what is chosen at the side."]


def test_two_runs_side_by_side(app):
    page = app(view="compare", a="chat/allow_list/baseline1-1", b="chat/allow_list/minilm-sample-1")
    numbers, sentences, utterances, settings = (frame.value for frame in page.dataframe)
    line = numbers.set_index("measure").loc["Perplexity, all words"]
    assert (line["A"], line["B"], line["B - A"]) == (427.0, 273.0, -154.0)
    assert line["B / A"] == pytest.approx(273 / 427)
    # The ratio over sentences is that of the sums.
    assert any("**0.639**" in text.value for text in page.markdown)
    assert sorted(sentences["line"]) == list(range(1, 51))
    assert sentences["difference"].abs().is_monotonic_decreasing
    assert utterances["errors_a"].sum() == utterances["errors_b"].sum() == 140
    assert settings.set_index("setting").loc["fill.kind", "B"] == "sample"


def test_the_fill_that_is_proposed_is_of_this_state(app, monkeypatch):
    runs = experiment.all_runs()
    best = next(run for run in runs if run.cell.path == "chat/allow_list/unigram-1")
    better = {**best.metrics, "perplexity": 2.0}
    earlier = replace(best, run_id="earlier", key="chat/allow_list/unigram-1#earlier", current=False, metrics=better)
    monkeypatch.setattr("dashboards.app.experiment._runs", lambda tracking: [*runs, earlier])
    page = app(view="compare")
    assert earlier.label in page.selectbox[1].options
    assert page.selectbox[1].value == best.key


def test_the_progress_of_the_experiment(app):
    page = app(view="follow", live="false")
    assert {metric.label: metric.value for metric in page.metric}["measured"] == "13"
    (cells,) = (frame.value for frame in page.dataframe)
    assert cells["cell"].tolist()[:3] == ["chat/no_language_model", "chat/pretrained", "chat/oracle-1"]
    assert set(cells["state"]) == {"measured"}


def test_a_store_that_is_not_there_is_one_sentence(app, monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'none.db'}")
    page = AppTest.from_file(PAGE, default_timeout=120)
    page.run()
    assert not page.exception
    assert ["there is no MLflow store" in error.value for error in page.error] == [True]
    assert not (tmp_path / "none.db").exists()
