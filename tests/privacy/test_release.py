"""A release: what it refuses, what card and dossier say and do not say, and that nothing but it is sent anywhere."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path

import finished_cells
import forked_commands
import pytest
import yaml
from finished_cells import attacked, mask, release
from made_up_words import made_up_words

from tasks.cli import main
from tasks.errors import PalimpsestError
from tasks.parameters.parameter_file import read_parameters
from tasks.privacy.checks import percent
from tasks.privacy.gate import Outcome, release_outcome
from tasks.privacy.ledger import read_ledger
from tasks.records.stage_report import read_report, recorded_stage
from tasks.review.plan import Plan, Stratum
from tasks.review.record import Mark, ReviewedLine, append, create, line_digest, path_of, text_digest

ROOT = Path(__file__).parents[2]
TODAY = datetime.now(UTC).date().isoformat()
OF_MODEL = {"exposure": 1.4, "exposure_ci": [1.0, 1.9], "membership_tpr_1": 0.012, "membership_tpr_1_ci": [0.005, 0.02]}
CANARIES = ("Zyxwquill", "Vexmorthané")
"""Words that every technique here masks."""
LISTED = "we met in the office on a and then called him chicago about his house john smith"
"""Words that the list keeps, a place and a name among them."""
WORDS = [*made_up_words(199), *dict.fromkeys(LISTED.split())]
LINES = [f"We met {name} in Chicago and called him about his house." for name in CANARIES * 10]
LINES += [f"We met John Smith and {name} in Chicago and called him about his house." for name in CANARIES * 5]
BY_LIST = {"kind": "allow_list", "path": "words.txt"}
BY_BOTH = [BY_LIST, {"kind": "entity_tagger", "tagger": {"kind": "crf"}}]
TECHNIQUES = {"words": BY_LIST, "every_tagger": {"kind": "combination", "rule": "union", "parts": BY_BOTH}}
METHODS = {
    "unigram": {"kind": "unigram"},
    "secret": {"kind": "surrogate"},
    "counted": {"kind": "unigram", "prior": "counted", "counts": {"epsilon": 2.0}},
}
LISTS, CELL = "chat/words/unigram-1", "chat/every_tagger/unigram-1"
SECRET, COUNTED = "chat/every_tagger/secret-1", "chat/every_tagger/counted-1"
PUSHED = ("obfuscated", "private/corpora", "private/masked")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A finished experiment of two techniques and three methods, in a repository of DVC's."""
    folder = tmp_path_factory.mktemp("release") / "an experiment"
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    parameters["masking"], parameters["filling"] = TECHNIQUES, parameters["filling"] | METHODS
    fills = {"speech_techniques": None, "fills": [{"methods": ["unigram"]}], "detectors": ["words"]}
    parameters["compare"] |= {"techniques": list(TECHNIQUES), **fills}
    # Ten of thirty lines hold a name that the list keeps, so that few lines are enough to tell.
    parameters["release"]["unmasked_direct"] = 200
    stage = {"cmd": "true", "outs": [{f"data/{name}": {"push": False}} for name in PUSHED]}
    files = {
        "params.yaml": yaml.safe_dump(parameters),
        "words.txt": "\n".join(LISTED.split()),
        "data/generic/train.txt": f"{LISTED}\n",
        "data/word_counts.tsv": "".join(f"{word}\t{number}\n" for number, word in enumerate(WORDS, 1)),
        "dvc.yaml": yaml.safe_dump({"stages": {"all": stage}}),
        ".dvc/config": "[core]\n    analytics = false\n    remote = away\n['remote \"away\"']\n    url = ../../away\n",
        ".dvc/.gitignore": "/config.local\n/tmp\n/cache\n",
        ".gitignore": "/data\n/results\n",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    with chdir(folder):
        write_corpus("chat", LINES)
        for technique, methods in (("words", ("unigram", "counted")), ("every_tagger", METHODS)):
            mask("chat", technique)
            for method in methods:
                fill(f"chat/{technique}/{method}-1")
        adapt()
    return folder


def write_corpus(corpus, lines):
    text = Path(f"data/private/corpora/{corpus}/train.txt")
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def fill(cell, **figures):
    """Fill a cell and attack it, unless its substitutes are secret."""
    finished_cells.fill(cell)
    if "secret" not in cell:
        attacked(cell, **figures)


def adapt():
    """What the training of a model leaves behind, without the training."""
    model, text = "models/adapted/chat/every_tagger/unigram-1", f"data/obfuscated/{CELL}.txt"
    Path(model).mkdir(parents=True)
    Path(model, "settings.json").write_text("{}", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["palimpsest", "adapt", "--model", "m", "--input", text, "--output", model])
        with recorded_stage("adapt", f"results/reports/adapt/{CELL}.json", inputs=[text], outputs=[model]):
            pass


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    copy = tmp_path / "here" / "an experiment"
    shutil.copytree(template, copy)
    monkeypatch.chdir(copy)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "dvc"))
    return copy


def allow(**settings):
    """Change settings of releases."""
    parameters = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    parameters["release"] |= settings
    Path("params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")


def refused(cell, reason, *options, name="a"):
    """What a refusal says: five lines at most, and no masked word."""
    with pytest.raises(PalimpsestError, match=reason) as error:
        release(cell, name, *options)
    assert len(str(error.value).splitlines()) <= 5
    assert not any(canary in str(error.value) for canary in CANARIES)
    return str(error.value)


def pages(name):
    """Card and dossier."""
    return [Path("releases", name, page).read_text(encoding="utf-8") for page in ("README.md", "DOSSIER.md")]


def private_dossier(name):
    """That of a release whose epsilon leaves figures out of what is shared."""
    return Path("data/private/releases", name, "DOSSIER.md").read_text(encoding="utf-8")


def test_card_and_dossier_say_what_left_and_no_word_of_what_was_masked(folder, capsys):
    release(CELL, "mail-2026", "--approved-by", "Ada", "--approved-by", "Grace")
    assert "dvc push releases/mail-2026.dvc" in capsys.readouterr().out
    made = folder / "releases" / "mail-2026"
    assert sorted(path.name for path in made.iterdir()) == ["DOSSIER.md", "README.md", "text.txt"]
    assert (made / "text.txt").read_bytes() == Path(f"data/obfuscated/{CELL}.txt").read_bytes()
    card, dossier = pages("mail-2026")
    for said in (CELL, "epsilon 0, given the masked text", "**This text is not anonymised.**"):
        assert said in card
    whole = private_dossier("mail-2026")
    for said in (
        "It is pseudonymised personal data (GDPR Art. 4(5))",
        "| masked words | Masked words recovered, top-1 | 2.1 % [1 %, 3 %] | - | "
        "at most 10 % (upper end, rung 'public') | some |",
        "No person has reviewed this text.",
        f"| Grace | | {TODAY} | recorded by `--approved-by` |",
    ):
        assert said in whole
    # How often a substitute was the masked word is a table of the report, and of no card.
    for unsaid in ("2.1 %", "restoration", *CANARIES):
        assert unsaid.casefold() not in (card + dossier).casefold()
    (entry,) = read_ledger()
    assert (entry.name, entry.epsilon, entry.unit, entry.lines) == ("mail-2026", 0.0, None, len(LINES))
    assert entry.approved_by == ["Ada", "Grace"]
    assert set(entry.files) == {"DOSSIER.md", "README.md", "text.txt"}
    copy = folder / "data/private/releases/mail-2026"
    assert {path.stat().st_mode & 0o777 for path in copy.iterdir()} == {0o600}
    assert copy.stat().st_mode & 0o777 == 0o700


def test_a_withdrawal_is_recorded_and_its_files_are_not_released_again(folder, capsys):
    release(CELL, "a", "--approved-by", "Ada")
    assert main(["ledger", "--withdraw", "a", "--reason", "a name was found"]) == 0
    assert f"a: withdrawn on {TODAY}: a name was found" in capsys.readouterr().out
    assert main(["ledger", "--json"]) == 0
    (written,) = json.loads(capsys.readouterr().out)["releases"]
    assert (written["name"], written["withdrawn_for"]) == ("a", "a name was found")
    refused(CELL, r"'a'.* has the same files and was withdrawn on", name="b")
    assert main(["ledger", "--withdraw", "aa", "--reason", "x"]) == 1
    assert re.search("no release 'aa'.*did you mean 'a'", capsys.readouterr().err)


def test_the_command_that_is_printed_passes_and_the_model_goes_with_the_text_if_asked_for(folder):
    attacked(CELL, **OF_MODEL)
    allow(license="cc-by-4.0")
    outcome = release_outcome(CELL, read_parameters(), with_model=True)
    assert outcome == Outcome(True, f"palimpsest release {CELL} --name chat_1 --with-model", [])
    # Run twice, as printed: the second time it is there.
    made = []
    for _ in range(2):
        assert main(shlex.split(outcome.command)[1:]) == 0
        assert release_outcome(CELL, read_parameters(), with_model=True) == outcome
        made.append({path: path.read_bytes() for path in (folder / "releases/chat_1").rglob("*.*")})
    assert made[0] == made[1]
    (entry,) = read_ledger()
    assert set(entry.files) == {"DOSSIER.md", "README.md", "text.txt", "model/settings.json"}
    card, _ = pages("chat_1")
    assert "license: cc-by-4.0" in card
    assert "## The language model" in card
    refused(CELL, "has the same files", name="text-alone")
    Path("models/adapted/chat/every_tagger/unigram-1/settings.json").write_text("{1}", encoding="utf-8")
    refused(CELL, "is not the file that the report of 'adapt' describes", "--with-model", name="other-model")


def test_a_push_sends_the_release_and_nothing_else(folder, tmp_path):
    def dvc(*command):
        done = forked_commands.dvc(folder, *command)
        assert done.returncode == 0, done.stdout + done.stderr

    dvc("commit", "--force")
    release(CELL, "mail")
    dvc("push")
    sent = [path.read_bytes() for path in (tmp_path / "here" / "away").rglob("*") if path.is_file()]
    released = [path.read_bytes() for path in (folder / "releases" / "mail").iterdir()]
    # And the list of the folder's files.
    assert sorted(file for file in sent if not file.startswith(b'[{"md5"')) == sorted(released)


def test_what_may_not_leave_is_refused(folder):
    attacked(SECRET)
    release(CELL, "first")
    refused("chat/every_tagger/unigrams-1", f"did you mean '{CELL}'")
    refused(CELL, "letters, digits", name="../a")
    refused(LISTS, "there is such a release, with other files", name="first")
    refused(CELL, "Release 'first' of .* has the same files", name="again")
    refused(LISTS, r"'first' \(30 lines\). Together they show 67 % of the words")
    refused(SECRET, r"'first' \(30 lines\). Together they tell substitutes from real words, and epsilons add up")
    refused(LISTS, "did you mean 'first'", "--also", "fist")
    (folder / "data/private/releases/first").rename(folder / "data/private/releases/gone")
    refused(SECRET, "private copy of release 'first' is not in")
    (folder / "data/private/masked/chat/train/every_tagger/text.txt").write_text("We met [MASK].\n", encoding="utf-8")
    refused(SECRET, "is not the file that the report of 'mask' describes")
    (folder / "releases/other.dvc").touch()
    refused(SECRET, "'releases/other' was released in another clone")
    assert [path.name for path in (folder / "releases").iterdir() if path.is_dir()] == ["first"]
    assert len(read_ledger()) == 1
    assert not (folder / "data/private/releases/a").exists()


def test_what_was_not_attacked_or_leaks_too_much_is_not_released(folder):
    refused(SECRET, r"it was not attacked\. Add 'secret' to 'audited'")
    # Limits about the model are for the release of the model.
    limits = {"exposure": 2.5, "reidentified": 0.05}
    allow(at_most=limits)
    refused(CELL, r"bits: not measured, limit 2\.5", "--with-model")
    attacked(CELL, exposure=2.4, exposure_ci=[1.9, 2.9], exposure_blind=1.4427)
    refused(CELL, r"bits: 2\.4 \[1\.9, 2\.9\], limit 2\.5 \(upper end\)", "--with-model")
    allow(at_most=limits | {"reidentified": 0.02})
    refused(CELL, r"2\.1 % \[1 %, 3 %\], limit 2 % \(upper end, rung 'public'\)")
    allow(at_most={"exposur": 2.0})
    refused(CELL, "no attack gives 'exposur'")
    allow(at_most=limits)
    release(CELL, "a")
    card, dossier = pages("a")
    assert "| left out | at most 5 % (upper end, rung 'public') |" in card
    assert "- Masked words recovered, top-1: a model that guesses." in private_dossier("a")
    assert "exposure" not in (card + dossier).casefold()


def test_a_second_release_of_the_same_lines_needs_a_decision(folder, capsys):
    attacked(SECRET)
    release(CELL, "first")
    release(SECRET, "second", "--also", "first")
    _, second = read_ledger()
    assert (second.also, second.shown_together, second.epsilon) == (["first"], 0.0, None)
    for page in pages("second"):
        assert "sees 0 % of the words" in page
    assert main(["ledger"]) == 0
    assert "chat: epsilon none is promised; no budget is set" in capsys.readouterr().out


def test_planted_unmasked_names_are_refused_by_the_readers_count(folder):
    _, second = refused(LISTS, "unmasked direct").splitlines()
    figure = r"  unmasked direct identifiers per 1,000 lines: \d+ \[\d+, \d+\], limit 200 \(upper end\)\. .+"
    assert re.fullmatch(figure, second)
    outcome = release_outcome(LISTS, read_parameters())
    assert (outcome.passes, outcome.command, outcome.missing) == (False, None, [second.strip()])
    # What an earlier release leaves unmasked counts, too.
    allow(unmasked_direct=1000)
    release(LISTS, "first")
    allow(unmasked_direct=200)
    refused(CELL, "unmasked direct identifiers", "--also", "first")


@pytest.mark.parametrize(("direct", "passes"), [(True, False), (False, True)])
def test_planted_unmasked_names_are_refused_by_the_review(folder, direct, passes):
    # A reviewer reads all lines: 10 of 30 hold an unmasked name.
    plan = Plan(text_digest(LINES), 1, (Stratum("all", len(LINES)),), tuple((line, 0) for line in range(len(LINES))))
    create(path_of("chat"), plan)
    for number, line in enumerate(LINES):
        marks = [Mark(*word.span(), "PERSON", direct) for word in re.finditer("John|Smith", line)]
        when = "2026-01-02T03:04:05+00:00"
        append(path_of("chat"), [ReviewedLine(number, "Ada", when, 6.0, line_digest(line), tuple(marks))])
    if passes:
        release(LISTS, "a")
        assert "Source: a person's review: 30 lines read by 1 reviewer." in private_dossier("a")
        assert "| 30 of 30 | Ada | 2026-01-02 | 2026-01-02 | 3 | one reviewer |" in private_dossier("a")
    else:
        assert "every_tagger" in refused(LISTS, r"per 1,000 lines: 330 \[\d+, \d+\], limit 200")


def test_a_release_beyond_the_budget_is_refused(folder):
    attacked(SECRET)
    allow(epsilon_budget=3.0)
    refused(SECRET, "epsilon_budget=3")
    release(COUNTED, "a")
    (entry,) = read_ledger()
    assert (entry.unit, entry.epsilon, entry.words_per_unit) == ("line", 2.0, 1)
    # Nothing more of what was masked; and other counts of the same words, which cost as much again.
    release(CELL, "b", "--also", "a")
    said = "epsilon 2 and 2 of releases 'a', 'b' are 4"
    refused("chat/words/counted-1", said, "--also", "a", "--also", "b", name="c")


def test_what_one_key_has_counted_no_other_key_counts_again_unless_told(folder, capsys):
    release(COUNTED, "a")
    Path("data/private/keys/clone_key").write_bytes(bytes(32))
    again = read_report(f"results/reports/fill/{COUNTED}.json")["command"][1:]
    says = f"was counted by key '{read_ledger()[0].key}'"
    assert main(again) == 1
    assert says in capsys.readouterr().err
    # Nor is another fill of the words released.
    mask("chat", "every_tagger")
    fill(CELL)
    refused(CELL, says, "--also", "a", name="b")
    allow(other_keys=[read_ledger()[0].key])
    assert main(again) == 0


def test_with_an_epsilon_neighbouring_corpora_have_the_same_card_and_dossier(folder):
    """One line says another name; the masked text is the same, and attacks find something else."""
    release(CELL, "before")
    other, made = CELL.replace("chat", "other"), set()
    for word, guessed in (("Zyxwquill", 0.031), ("Vexmorthané", 0.033)):
        shutil.rmtree("releases")
        shutil.rmtree("data/private/releases")
        Path("data/private/ledger.jsonl").unlink()
        figures = {"reidentified_1": guessed, "exposure": 2 * guessed, "attackers": {"reidentified_1": word}}
        for corpus, cells in (("chat", (COUNTED, CELL)), ("other", (other,))):
            write_corpus(corpus, [f"We met {word} in Chicago and called him about his house.", *LINES[1:]])
            mask(corpus, "every_tagger")
            for cell in cells:
                fill(cell, **figures)
        release(COUNTED, "counted")
        release(other, "other", "--also", "counted")
        made.add((*pages("counted"), *pages("other")))
    assert len(made) == 1
    assert percent(guessed) in private_dossier("counted")


def test_the_budget_counts_lines_and_not_names(folder, capsys):
    """The same text under another name, with a line more, edited and said otherwise, has no second budget."""
    allow(epsilon_budget=3.0)
    release(COUNTED, "a")
    command = read_report(f"results/reports/fill/{COUNTED}.json")["command"][1:]
    for corpus, lines in {
        "more": [*LINES, "We called Zyxwquill."],
        "case": [line.upper() for line in LINES],
        "footer": [f"{line} We met in the office on a house." for line in LINES],
    }.items():
        cell = COUNTED.replace("chat", corpus)
        write_corpus(corpus, lines)
        mask(corpus, "every_tagger")
        capsys.readouterr()
        assert main([option.replace("chat", corpus) for option in command]) == 1
        assert "epsilon 2 and 2 of releases 'a' are 4, above" in capsys.readouterr().err
        # The gate asks again: the budget may have been another one when the text was filled.
        allow(epsilon_budget=None)
        fill(cell)
        allow(epsilon_budget=3.0)
        refused(cell, "epsilon 2 and 2 of releases 'a' are 4, above", "--also", "a", name="b")
        assert " 0 %" not in refused(cell, r"released in 'a' \(30 lines.*and epsilons add up", name="b")
    allow(epsilon_budget=4.0)
    release("more/every_tagger/counted-1", "b", "--also", "a")
    assert [entry.spent for entry in read_ledger()] == [2.0, 4.0]
    assert main(["ledger"]) == 0
    assert "more: epsilon 4 a line; budget 4" in capsys.readouterr().out
