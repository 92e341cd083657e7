"""``palimpsest persons``: its report, a chat model as attacker, shares of a population, and one table of odd input."""

import json

import pytest
from chat_server import chat_server
from test_persons import DOCUMENTS, person

from tasks.cli import main

PII = {"NAME": "Zebulon Quux", "LOCATION": "Ulm / Germany", "OCCUPATION": "baker"}
OTHER = {"NAME": "Tib Ork", "LOCATION": "Graz", "OCCUPATION": "pilot"}


def document(facts):
    return {"text": ", ".join(facts.values()) + ".", "subjects": [person(facts.get("NAME", ""), **facts)]}


TWO = [document(PII), document(OTHER)]


@pytest.fixture
def chat():
    with chat_server() as server:
        yield server


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command on documents, as records or as lines: the exit status, both streams, and the measures by
    version. The versions are the documents and ``x``."""
    monkeypatch.chdir(tmp_path)

    def call(documents, texts=None, *options):
        for name, records in (("facts", documents), ("x", texts or [{"text": each["text"]} for each in documents])):
            lines = [each if isinstance(each, str) else json.dumps(each) for each in records]
            (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        status = main(["persons", "--facts", "facts", "--texts", "x", "--report", "report", *options])
        shown, report = capsys.readouterr(), tmp_path / "report"
        return status, shown, {} if status else json.loads(report.read_text())["measured"]["by_version"]

    return call


def prompts_of(chat):
    return [body["messages"][0]["content"] for _, _, body in chat.asked]


def asking(chat, **settings):
    given = {"attackers": "[endpoint]", "endpoint.url": chat.url, **settings}
    return ["--answers", "answers", *(word for key, value in given.items() for word in ("--set", f"{key}={value}"))]


def test_the_command_reports_numbers_alone(run, tmp_path):
    facts = [each.model_dump(by_alias=True) for each in DOCUMENTS]
    masked = [{"text": "[MASK] of Ulm"}, {"text": ""}, {"text": "[MASK]"}]
    attackers = ["--set", "attackers=[verbatim, frequency]"]
    _, shown, found = run(facts, masked, *attackers)
    assert [found[version]["verbatim"]["cpr"] for version in ("--facts", "x")] == [0, 7 / 8]
    assert "verbatim | 87.5 [" in shown.out
    written = shown.out + (tmp_path / "report").read_text()
    assert not [word for word in ("Quill", "Otto", "Ulm", "aker") if word in written]
    _, _, found = run(facts, masked, *attackers, "--sample", "1", "--seed", "5")
    assert found["--facts"]["verbatim"]["persons"] == 1


def value_in_passage(prompt):
    """The number of the value that the passage has, in a sentence; by chance without a passage."""
    passage, _, values = prompt.partition("Which of these")
    found = [line.partition(". ") for line in values.splitlines() if line[:1].isdigit()]
    return next((f"I am sure.\nIt is {number}." for number, _, value in found if value in passage), "none of them")


def test_a_chat_model_is_asked_once_and_replayed(tmp_path, run, chat):
    chat.answer = value_in_passage
    masked = [{"text": "[MASK], Ulm / Germany, [MASK]."}, {"text": ""}]
    status, said, found = run(TWO, masked, *asking(chat))
    assert status == 0
    assert {name: by["endpoint"]["cpr"] for name, by in found.items()} == {"--facts": 0, "x": pytest.approx(5 / 6)}
    assert (found["x"]["endpoint"]["unanswered"], found["x"]["endpoint"]["cpr_blind"]) == (5, 1)
    assert "x: 5 of 6 answers of the endpoint name no value" in said.err
    assert not [word for word in (*PII.values(), *OTHER.values()) if word in said.out + said.err]
    assert (tmp_path / "answers").stat().st_mode & 0o077 == 0
    asked = prompts_of(chat)
    assert len(asked) == len(set(asked))
    assert run(TWO, masked, *asking(chat, **{"endpoint.url": "null"}))[0] == 0
    assert prompts_of(chat) == asked


def test_an_attack_goes_on_after_the_recorded_answers(run, chat):
    chat.answer = lambda prompt: "1" if len(chat.asked) <= 4 else None
    status, said, _ = run(TWO, None, *asking(chat))
    assert status == 1
    assert "does not answer: Server error '503 Service Unavailable'" in said.err
    assert "run the same again, which goes on after the recorded answers" in said.err
    assert (said.err.count("\n"), "Quux" in said.err, "baker" in said.err) == (1, False, False)
    chat.answer = lambda prompt: "1"
    assert run(TWO, None, *asking(chat))[0] == 0
    assert len(chat.asked) == len(set(prompts_of(chat))) + 1


MARGINALS = "attribute,value,share\nLOCATION,ulm / germany,0.001\nOCCUPATION,Baker,0.01\nOCCUPATION,Pilot,0.5\n"


def test_expected_people_of_a_population_by_hand(tmp_path, run):
    (tmp_path / "shares.csv").write_text(MARGINALS)
    options = "--marginals shares.csv --population 10000 --set attackers=[verbatim]".split()
    documents = [document({**PII, "AGE": "81"}), document(OTHER)]
    _, said, found = run(documents, [{"text": "Ulm baker 81"}, {"text": "Graz"}], *options)
    keys = "population_median", "population_below_1", "population_values", "population_values_left_out"
    # 10,000 x 0.001 x 0.01 = 0.1 for the first person; the second has half of 10,000, since Graz has no share.
    assert [found["--facts"]["verbatim"][key] for key in keys] == [pytest.approx((0.1 + 5000) / 2), 1, 5, 2]
    assert [found["x"]["verbatim"][key] for key in keys][:2] == [pytest.approx((0.1 + 10_000) / 2), 1]
    assert "no share of these attributes is used: AGE" in said.err


NOBODY, ONE_TEXT = '{"text": "Quux", "subjects": []}', [{"text": "a"}]
BAD_KEYWORD = '{"text": "Quux", "subjects": [{"description": "Quux", "PIIs": [{"tag": "NAME", "keyword": 7}]}]}'
ODD = {
    "a document without persons": ([document(PII), {"text": "Nobody."}], [], 0, "| x | verbatim | 0.0 ["),
    "a keyword that is no text": ([NOBODY, BAD_KEYWORD], [], 1, "line 2: subjects.0.PIIs.0.keyword: Input should be a"),
    "more documents than texts": ([NOBODY] * 2, [], 1, "'x' has 1 documents, and 'facts' 2"),
    "answers that are nonsense": (TWO, ["chat", "Grmpf 77 and 78"], 0, "--facts: 6 of 6 answers of the endpoint name"),
    "another machine": (TWO, ["chat", "", "endpoint.url=http://far.example/v1"], 1,
        "the texts would be sent to 'far.example', and may be private"),
    "no file for the answers": (TWO, ["--set", "attackers=[endpoint]"], 1, "--answers and the attacker endpoint need"),
    "a population without shares": (TWO, ["--population", "9"], 1, "--marginals and --population need each other"),
    "a share above 1": (TWO, ["shares", MARGINALS + "LOCATION,Quux,2"], 1, "line 5 has a share that is not above 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_odd_input_is_one_line_or_a_result(case, tmp_path, run, chat):
    documents, options, status, says = ODD[case]
    if options[:1] == ["chat"]:
        answer = options[1]
        chat.answer = lambda prompt: answer
        options = [*asking(chat), *(word for each in options[2:] for word in ("--set", each))]
    else:
        if options[:1] == ["shares"]:
            (tmp_path / "shares.csv").write_text(options[1])
            options = ["--marginals", "shares.csv", "--population", "100"]
        options = options if "--set" in options else [*options, "--set", "attackers=[verbatim]"]
    found, said, _ = run(documents, ONE_TEXT if NOBODY in documents else None, *options)
    assert found == status
    assert says in said.out + said.err
    assert "Quux" not in said.out + said.err
    assert not status or said.err.count("\n") == 1
