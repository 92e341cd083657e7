"""A release: what it refuses, what card and dossier say and do not say, and that nothing but it is sent anywhere."""

import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path

import forked_commands
import pytest
import yaml
from made_up_words import made_up_words

from flows import release_command
from tasks.cli import command_parser, main
from tasks.errors import PalimpsestError
from tasks.parameters.parameter_file import read_parameters
from tasks.privacy.checks import percent
from tasks.privacy.gate import Outcome, release_outcome
from tasks.privacy.ledger import read_ledger
from tasks.records.stage_report import read_report, recorded_stage
from tasks.review.plan import Plan, Stratum
from tasks.review.record import Mark, ReviewedLine, append, create, line_digest, path_of, text_digest

ROOT = Path(__file__).parent.parent.parent
TODAY = datetime.now(UTC).date().isoformat()
OF_MODEL = {"exposure": 1.4, "exposure_ci": [1.0, 1.9], "membership_tpr_1": 0.012, "membership_tpr_1_ci": [0.005, 0.02]}
CANARIES = ("Zyxwquill", "Vexmorthané")
"""Words that every technique here masks."""
LISTED = "we met in the office on a and then called him chicago about his house john smith"
"""Words that the list keeps, a place and a name among them."""
WORDS = [*made_up_words(199), *dict.fromkeys(LISTED.split())]
LINES = [f"We met {name} in Chicago and called him about his house." for name in CANARIES * 10]
LINES += [f"We met John Smith and {name} in Chicago and called him about his house." for name in CANARIES * 5]
TECHNIQUES = {
    "words": {"kind": "allow_list", "path": "words.txt"},
    "every_tagger": {
        "kind": "combination",
        "rule": "union",
        "parts": [{"kind": "allow_list", "path": "words.txt"}, {"kind": "entity_tagger", "tagger": {"kind": "crf"}}],
    },
}
METHODS = {
    "unigram": {"kind": "unigram"},
    "secret": {"kind": "surrogate"},
    "counted": {"kind": "unigram", "prior": "counted", "counts": {"epsilon": 2.0}},
}
PUSHED = ("obfuscated", "private/corpora", "private/masked")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A finished experiment of two techniques and two methods, in a repository of DVC's."""
    folder = tmp_path_factory.mktemp("release") / "an experiment"
    folder.mkdir()
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    parameters["masking"], parameters["filling"] = TECHNIQUES, parameters["filling"] | METHODS
    parameters["compare"] |= {
        "techniques": ["words", "every_tagger"],
        "speech_techniques": None,
        "fills": [{"methods": ["unigram"]}],
        "detectors": ["words"],
    }
    # Ten of thirty lines hold a name that the list keeps, so that few lines are enough to tell.
    parameters["release"]["unmasked_direct"] = 200
    files = {
        "params.yaml": yaml.safe_dump(parameters),
        "words.txt": "\n".join(LISTED.split()),
        "data/private/corpora/chat/train.txt": "".join(f"{line}\n" for line in LINES),
        "data/generic.txt": f"{LISTED}\n",
        "data/word_counts.tsv": "".join(f"{word}\t{number}\n" for number, word in enumerate(WORDS, 1)),
        "dvc.yaml": yaml.safe_dump(
            {"stages": {"all": {"cmd": "true", "outs": [{f"data/{name}": {"push": False}} for name in PUSHED]}}}
        ),
        ".dvc/config": "[core]\n    analytics = false\n    remote = away\n['remote \"away\"']\n    url = ../../away\n",
        ".dvc/.gitignore": "/config.local\n/tmp\n/cache\n",
        ".gitignore": "/data\n/results\n",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    with pytest.MonkeyPatch.context() as patch, chdir(folder):
        fill(patch)
        adapt(patch, folder)
    return folder


def fill(patch, corpus="chat", techniques=tuple(TECHNIQUES), methods=tuple(METHODS), **figures):
    """Mask a corpus, fill and attack it."""
    for technique in techniques:
        masked = f"data/private/masked/{corpus}/train/{technique}"
        sidecar = f"{masked}/sidecar.jsonl"
        cell = ["--params", "params.yaml", "--cell", f"dataset={corpus},technique={technique}"]
        text = ["--input", f"data/private/corpora/{corpus}/train.txt", "--output", f"{masked}/text.txt"]
        report = ["--report", f"results/reports/mask/{corpus}/{technique}.json"]
        kept = ["--allowed-words", f"{masked}/allowed_words.txt"]
        named = ["--params", "params.yaml", "--technique", technique, "--cell", f"dataset={corpus}"]
        run(patch, "mask", *named, *text, *kept, "--sidecar", sidecar, *report)
        for method in methods:
            text = [
                "--input",
                f"{masked}/text.txt",
                "--output",
                f"data/obfuscated/{corpus}/{technique}/{method}-1.txt",
            ]
            report = ["--report", f"results/reports/fill/{corpus}/{technique}/{method}-1.json"]
            counts = ["--word-counts", "data/word_counts.tsv", "--sidecar", sidecar]
            counts += ["--generic", "data/generic.txt"]
            run(patch, "fill", *cell, "--method", method, *text, *kept, *counts, *report)
            if method != "secret":
                attacked(patch, technique, method, corpus, **figures)


def attacked(patch, technique, method, corpus="chat", **figures):
    """What the attacks on a cell leave behind, without these."""
    text = f"data/obfuscated/{corpus}/{technique}/{method}-1.txt"
    measured = {"verbatim_lines": 0.0, "reidentified_1": 0.0213, "reidentified_1_ci": [0.01, 0.03], **figures}
    patch.setattr(sys, "argv", ["palimpsest", "audit", "--text", text])
    report = f"results/reports/audit/{corpus}/{technique}/{method}-1.json"
    with recorded_stage("audit", report, inputs=[text]) as recorded:
        recorded.measure(**{"attackers": {"reidentified_1": "a model that guesses"}} | measured)


def adapt(patch, folder):
    """What the training of a model leaves behind, without the training."""
    model, text = "models/adapted/chat/every_tagger/unigram-1", "data/obfuscated/chat/every_tagger/unigram-1.txt"
    (folder / model).mkdir(parents=True)
    (folder / model / "settings.json").write_text("{}", encoding="utf-8")
    patch.setattr(sys, "argv", ["palimpsest", "adapt", "--model", "m", "--input", text, "--output", model])
    with recorded_stage(
        "adapt", "results/reports/adapt/chat/every_tagger/unigram-1.json", inputs=[text], outputs=[model]
    ):
        pass


def run(patch, *command):
    """In process; the report takes the command from where a process has it."""
    patch.setattr(sys, "argv", ["palimpsest", *command])
    assert main(list(command)) == 0


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    copy = tmp_path / "here" / "an experiment"
    shutil.copytree(template, copy)
    monkeypatch.chdir(copy)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "dvc"))
    return copy


def release(*options):
    return release_command.run(command_parser("release", release_command).parse_args(list(options)))


def test_card_and_dossier_say_what_left_and_no_word_of_what_was_masked(folder, capsys):
    release("chat/every_tagger/unigram-1", "--name", "mail-2026", "--approved-by", "Ada", "--approved-by", "Grace")
    assert "dvc push releases/mail-2026.dvc" in capsys.readouterr().out
    made = folder / "releases" / "mail-2026"
    assert sorted(path.name for path in made.iterdir()) == ["DOSSIER.md", "README.md", "text.txt"]
    filled = (folder / "data/obfuscated/chat/every_tagger/unigram-1.txt").read_bytes()
    assert (made / "text.txt").read_bytes() == filled
    card, dossier = ((made / name).read_text(encoding="utf-8") for name in ("README.md", "DOSSIER.md"))
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["size_categories"] == ["n<1K"]
    assert front["configs"][0]["data_files"] == [{"split": "train", "path": "text.txt"}]
    for said in ("chat/every_tagger/unigram-1", "epsilon 0, given the masked text", "**This text is not anonymised.**"):
        assert said in card
    whole = private_dossier(folder, "mail-2026")
    assert "2.1 %" not in card + dossier
    for said in (
        "It is pseudonymised personal data (GDPR Art. 4(5))",
        "| masked words | Masked words recovered, top-1 | 2.1 % [1 %, 3 %] | - | "
        "at most 10 % (upper end, rung 'public') | some |",
        "No person has reviewed this text.",
        "The ledger has no earlier release of this corpus.",
        f"| Ada | | {TODAY} | recorded by `--approved-by` |",
        f"| Grace | | {TODAY} | recorded by `--approved-by` |",
    ):
        assert said in whole
    for canary in CANARIES:
        assert canary.casefold() not in (card + dossier).casefold()
    # How often a substitute was the masked word is a table of the report, and of no card.
    assert "restoration" not in (card + dossier).casefold()
    (entry,) = read_ledger()
    assert (entry.name, entry.epsilon, entry.unit, entry.lines) == ("mail-2026", 0.0, None, len(LINES))
    assert entry.approved_by == ["Ada", "Grace"]
    assert set(entry.files) == {"DOSSIER.md", "README.md", "text.txt"}
    copy = folder / "data/private/releases/mail-2026"
    assert {path.stat().st_mode & 0o777 for path in copy.iterdir()} == {0o600}
    assert copy.stat().st_mode & 0o777 == 0o700


def private_dossier(folder, name):
    """That of a release whose epsilon leaves figures out of what is shared."""
    return (folder / "data/private/releases" / name / "DOSSIER.md").read_text(encoding="utf-8")


def test_the_same_release_again_is_no_error_and_changes_nothing(folder, capsys):
    release("chat/every_tagger/unigram-1", "--name", "a")
    before = {path: path.read_bytes() for path in (folder / "releases/a").iterdir()}
    capsys.readouterr()
    assert release("chat/every_tagger/unigram-1", "--name", "a") == 0
    assert "already released in releases/a" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in (folder / "releases/a").iterdir()} == before
    assert len(read_ledger()) == 1


def test_a_withdrawal_is_recorded_and_its_files_are_not_released_again(folder, capsys):
    release("chat/every_tagger/unigram-1", "--name", "a", "--approved-by", "Ada")
    assert main(["ledger", "--withdraw", "a", "--reason", "a name was found"]) == 0
    said = capsys.readouterr().out
    assert f"a: withdrawn on {TODAY}: a name was found" in said
    assert "Ada" in said
    assert [release.name for release in read_ledger()] == ["a"]
    with pytest.raises(PalimpsestError, match=r"'a'.* has the same files and was withdrawn on"):
        release("chat/every_tagger/unigram-1", "--name", "b")
    for options, reason in [
        (["--withdraw", "a", "--reason", "again"], "was withdrawn already"),
        (["--withdraw", "aa", "--reason", "x"], "no release 'aa'.*did you mean 'a'"),
        (["--withdraw", "a"], "belong together"),
    ]:
        assert main(["ledger", *options]) == 1
        assert re.search(reason, capsys.readouterr().err)


@pytest.mark.parametrize("with_model", [False, True])
def test_the_command_that_is_printed_passes(folder, monkeypatch, capsys, with_model):
    if with_model:
        attacked(monkeypatch, "every_tagger", "unigram", **OF_MODEL)
    cell = "chat/every_tagger/unigram-1"
    outcome = release_outcome(cell, read_parameters(), with_model=with_model)
    assert outcome == Outcome(True, f"palimpsest release {cell} --name chat_1" + " --with-model" * with_model, [])
    # Run twice, as printed: the second time it is there.
    for _ in range(2):
        assert main(shlex.split(outcome.command)[1:]) == 0
        assert release_outcome(cell, read_parameters(), with_model=with_model) == outcome


def test_what_is_missing_is_said_before_anything_is_released(folder):
    def missing(cell):
        outcome = release_outcome(cell, read_parameters())
        assert not outcome.passes
        assert outcome.command is None
        return " ".join(outcome.missing)

    allow(folder, unmasked_direct=5)
    assert re.search(r"Review \d+ lines: palimpsest review chat/every_tagger", missing("chat/every_tagger/unigram-1"))
    assert "Add 'secret' to 'audited'" in missing("chat/every_tagger/secret-1")
    assert "did you mean" in missing("chat/every_tagger/unigrams-1")
    assert not read_ledger()


def test_a_push_sends_the_release_and_nothing_else(folder, tmp_path):
    def dvc(*command):
        done = forked_commands.dvc(folder, *command)
        assert done.returncode == 0, done.stdout + done.stderr

    dvc("commit", "--force")
    release("chat/every_tagger/unigram-1", "--name", "mail")
    dvc("push")
    sent = [path.read_bytes() for path in (tmp_path / "here" / "away").rglob("*") if path.is_file()]
    released = [path.read_bytes() for path in (folder / "releases" / "mail").iterdir()]
    # And the list of the folder's files.
    assert sorted(file for file in sent if not file.startswith(b'[{"md5"')) == sorted(released)


def test_what_may_not_leave_is_refused_in_five_lines_at_most(folder, monkeypatch):
    attacked(monkeypatch, "every_tagger", "secret")
    release("chat/every_tagger/unigram-1", "--name", "first")

    def another_state():
        masked = folder / "data/private/masked/chat/train/every_tagger/text.txt"
        masked.write_text("We met [MASK].\n", encoding="utf-8")

    def gone():
        (folder / "data/private/releases/first").rename(folder / "data/private/releases/gone")

    def elsewhere():
        (folder / "releases/other.dvc").touch()

    refused = [
        (["chat/every_tagger/unigrams-1", "--name", "a"], "did you mean 'chat/every_tagger/unigram-1'"),
        (["chat/every_tagger/unigram-1", "--name", "../a"], "letters, digits"),
        (["chat/words/unigram-1", "--name", "first"], "there is such a release, with other files"),
        (["chat/every_tagger/unigram-1", "--name", "again"], "Release 'first' of .* has the same files"),
        (["chat/words/unigram-1", "--name", "a"], r"'first' \(30 lines\). Together they show 67 % of the words"),
        (
            ["chat/every_tagger/secret-1", "--name", "a"],
            r"'first' \(30 lines\). Together they tell substitutes from real words, and epsilons add up",
        ),
        (["chat/words/unigram-1", "--name", "a", "--also", "fist"], "did you mean 'first'"),
        (gone, ""),
        (["chat/every_tagger/secret-1", "--name", "a"], "private copy of release 'first' is not in"),
        (another_state, ""),
        (["chat/every_tagger/secret-1", "--name", "a"], "is not the file that the report of 'mask' describes"),
        (elsewhere, ""),
        (["chat/every_tagger/secret-1", "--name", "a"], "'releases/other' was released in another clone"),
    ]
    for options, reason in refused:
        if callable(options):
            options()
            continue
        with pytest.raises(PalimpsestError, match=reason) as error:
            release(*options)
        assert len(str(error.value).splitlines()) <= 5
        assert not any(canary in str(error.value) for canary in CANARIES)
    assert [path.name for path in (folder / "releases").iterdir() if path.is_dir()] == ["first"]
    assert len(read_ledger()) == 1
    assert not (folder / "data/private/releases/a").exists()


def test_what_was_not_attacked_or_leaks_too_much_is_not_released(folder, monkeypatch):
    with pytest.raises(PalimpsestError, match=r"it was not attacked\. Add 'secret' to 'audited'"):
        release("chat/every_tagger/secret-1", "--name", "a")
    # Limits about the model are for the release of the model.
    limits = {"exposure": 2.5, "reidentified": 0.05}
    allow(folder, at_most=limits)
    with pytest.raises(PalimpsestError, match=r"bits: not measured, limit 2\.5"):
        release("chat/every_tagger/unigram-1", "--name", "a", "--with-model")
    attacked(monkeypatch, "every_tagger", "unigram", exposure=2.4, exposure_ci=[1.9, 2.9], exposure_blind=1.4427)
    with pytest.raises(PalimpsestError, match=r"bits: 2\.4 \[1\.9, 2\.9\], limit 2\.5 \(upper end\)"):
        release("chat/every_tagger/unigram-1", "--name", "a", "--with-model")
    allow(folder, at_most=limits | {"reidentified": 0.02})
    with pytest.raises(PalimpsestError, match=r"2\.1 % \[1 %, 3 %\], limit 2 % \(upper end, rung 'public'\)"):
        release("chat/every_tagger/unigram-1", "--name", "a")
    allow(folder, at_most={"exposur": 2.0})
    with pytest.raises(PalimpsestError, match="no attack gives 'exposur'"):
        release("chat/every_tagger/unigram-1", "--name", "a")
    allow(folder, at_most=limits)
    release("chat/every_tagger/unigram-1", "--name", "a")
    card, dossier = ((folder / "releases/a" / name).read_text(encoding="utf-8") for name in ("README.md", "DOSSIER.md"))
    assert "| left out | at most 5 % (upper end, rung 'public') |" in card
    assert "- Masked words recovered, top-1: a model that guesses." in private_dossier(folder, "a")
    assert "exposure" not in (card + dossier).casefold()


def test_a_second_release_of_the_same_lines_needs_a_decision(folder, capsys, monkeypatch):
    attacked(monkeypatch, "every_tagger", "secret")
    release("chat/every_tagger/unigram-1", "--name", "first")
    release("chat/every_tagger/secret-1", "--name", "second", "--also", "first")
    _, second = read_ledger()
    assert (second.also, second.shown_together, second.epsilon) == (["first"], 0.0, None)
    card, dossier = ((folder / "releases/second" / name).read_text("utf-8") for name in ("README.md", "DOSSIER.md"))
    assert "`first` (`chat/every_tagger/unigram-1`). A reader of all of them sees 0 % of the words" in card
    assert "| first | " in dossier
    assert "A reader of all releases sees 0 % of the words" in dossier
    assert main(["ledger"]) == 0
    assert "chat: epsilon none is promised; no budget is set" in capsys.readouterr().out


def test_planted_unmasked_names_are_refused_by_the_readers_count(folder):
    with pytest.raises(PalimpsestError) as error:
        release("chat/words/unigram-1", "--name", "a")
    first, second = str(error.value).splitlines()
    assert first == "'chat/words/unigram-1' is not released: 1 check failed."
    assert re.fullmatch(
        r"  unmasked direct identifiers per 1,000 lines: \d+ \[\d+, \d+\], limit 200 \(upper end\)\. .+", second
    )
    outcome = release_outcome("chat/words/unigram-1", read_parameters())
    assert (outcome.passes, outcome.command, outcome.missing) == (False, None, [second.strip()])
    release("chat/every_tagger/unigram-1", "--name", "a")


@pytest.mark.parametrize(("direct", "passes"), [(True, False), (False, True)])
def test_planted_unmasked_names_are_refused_by_the_review(folder, direct, passes):
    # A reviewer reads all lines: 10 of 30 hold an unmasked name.
    plan = Plan(text_digest(LINES), 1, (Stratum("all", len(LINES)),), tuple((line, 0) for line in range(len(LINES))))
    create(path_of("chat"), plan)
    append(path_of("chat"), [read_line(number, line, direct) for number, line in enumerate(LINES)])
    if passes:
        release("chat/words/unigram-1", "--name", "a")
        dossier = private_dossier(folder, "a")
        assert "Source: a person's review: 30 lines read by 1 reviewer." in dossier
        assert "| 30 of 30 | Ada | 2026-01-02 | 2026-01-02 | 3 | one reviewer |" in dossier
        return
    with pytest.raises(PalimpsestError, match=r"per 1,000 lines: 330 \[\d+, \d+\], limit 200") as error:
        release("chat/words/unigram-1", "--name", "a")
    assert "every_tagger" in str(error.value)


def read_line(number, line, direct):
    marks = [Mark(*word.span(), "PERSON", direct) for word in re.finditer("John|Smith", line)]
    return ReviewedLine(number, "Ada", "2026-01-02T03:04:05+00:00", 6.0, line_digest(line), tuple(marks))


def test_what_an_earlier_release_leaves_unmasked_counts(folder):
    allow(folder, unmasked_direct=1000)
    release("chat/words/unigram-1", "--name", "first")
    allow(folder, unmasked_direct=200)
    with pytest.raises(PalimpsestError, match="unmasked direct identifiers"):
        release("chat/every_tagger/unigram-1", "--name", "second", "--also", "first")


def test_the_model_goes_with_the_text_if_asked_for(folder):
    allow(folder, at_most={}, license="cc-by-4.0")
    release("chat/every_tagger/unigram-1", "--name", "with-model", "--with-model")
    assert (folder / "releases/with-model/model/settings.json").read_text(encoding="utf-8") == "{}"
    card = (folder / "releases/with-model/README.md").read_text(encoding="utf-8")
    assert "license: cc-by-4.0" in card
    assert "## The language model" in card
    assert set(read_ledger()[0].files) == {"DOSSIER.md", "README.md", "text.txt", "model/settings.json"}
    with pytest.raises(PalimpsestError, match="has the same files"):
        release("chat/every_tagger/unigram-1", "--name", "text-alone")
    (folder / "models/adapted/chat/every_tagger/unigram-1/settings.json").write_text("{1}", encoding="utf-8")
    with pytest.raises(PalimpsestError, match="is not the file that the report of 'adapt' describes"):
        release("chat/every_tagger/unigram-1", "--name", "other-model", "--with-model")


def allow(folder, **settings):
    parameters = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    parameters["release"] |= settings
    (folder / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")


def test_a_release_beyond_the_budget_is_refused(folder, monkeypatch):
    attacked(monkeypatch, "every_tagger", "secret")
    allow(folder, epsilon_budget=3.0)
    with pytest.raises(PalimpsestError, match="epsilon_budget=3"):
        release("chat/every_tagger/secret-1", "--name", "a")
    release("chat/every_tagger/counted-1", "--name", "a")
    (entry,) = read_ledger()
    assert (entry.unit, entry.epsilon, entry.words_per_unit) == ("line", 2.0, 1)
    # Nothing more of what was masked; and other counts of the same words, which cost as much again.
    release("chat/every_tagger/unigram-1", "--name", "b", "--also", "a")
    with pytest.raises(PalimpsestError, match="epsilon 2 and 2 of releases 'a', 'b' are 4"):
        release("chat/words/counted-1", "--name", "c", "--also", "a", "--also", "b")


def test_what_one_key_has_counted_no_other_key_counts_again_unless_told(folder, monkeypatch, capsys):
    release("chat/every_tagger/counted-1", "--name", "a")
    (folder / "data/private/keys/clone_key").write_bytes(bytes(32))
    again = read_report(folder / "results/reports/fill/chat/every_tagger/counted-1.json")["command"][1:]
    assert main(again) == 1
    assert f"was counted by key '{read_ledger()[0].key}'" in capsys.readouterr().err
    allow(folder, other_keys=[read_ledger()[0].key])
    assert main(again) == 0


def test_with_an_epsilon_neighbouring_corpora_have_the_same_card_and_dossier(folder, monkeypatch):
    """One line says another name; the masked text is the same, and attacks find something else."""
    (folder / "data/private/corpora/other").mkdir()
    release("chat/every_tagger/unigram-1", "--name", "before")
    pages = {}
    for word, guessed in (("Zyxwquill", 0.031), ("Vexmorthané", 0.033), ("Brannoquist", 0.034)):
        lines = [f"We met {word} in Chicago and called him about his house.", *LINES[1:]]
        for corpus in ("chat", "other"):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"data/private/corpora/{corpus}/train.txt").write_text(text, encoding="utf-8")
        shutil.rmtree(folder / "releases", ignore_errors=True)
        shutil.rmtree(folder / "data/private/releases")
        (folder / "data/private/ledger.jsonl").unlink()
        figures = {"reidentified_1": guessed, "exposure": 2 * guessed, "attackers": {"reidentified_1": word}}
        fill(monkeypatch, techniques=["every_tagger"], methods=["counted", "unigram"], **figures)
        fill(monkeypatch, "other", techniques=["every_tagger"], methods=["unigram"], **figures)
        for number, cell in enumerate(("chat/every_tagger/counted-1", "other/every_tagger/unigram-1")):
            also = ["--also", "release0"] if number else []
            release(cell, "--name", f"release{number}", *also)
            for name in ("README.md", "DOSSIER.md"):
                page = (folder / f"releases/release{number}" / name).read_bytes()
                pages.setdefault((cell, name), set()).add(page)
    assert {page: len(found) for page, found in pages.items()} == dict.fromkeys(pages, 1)
    assert percent(guessed) in private_dossier(folder, "release0")


def test_the_budget_counts_lines_and_not_names(folder, monkeypatch, capsys):
    """The same text under another name, with a line more, edited and said otherwise, has no second budget."""
    allow(folder, epsilon_budget=3.0)
    release("chat/every_tagger/counted-1", "--name", "a")
    changed = {
        "more": [*LINES, "We called Zyxwquill."],
        "spaces": [line.replace(" ", "  ") for line in LINES],
        "case": [line.upper() for line in LINES],
        "footer": [f"{line} We met in the office on a house." for line in LINES],
        "tokens": [line.replace(".", " .").replace("John Smith", "John  Smith ,") for line in LINES],
    }
    for corpus, lines in changed.items():
        place = folder / f"data/private/corpora/{corpus}/train.txt"
        place.parent.mkdir()
        place.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        command = read_report(folder / "results/reports/fill/chat/every_tagger/counted-1.json")["command"][1:]
        with pytest.MonkeyPatch.context() as patch:
            fill(patch, corpus, techniques=["every_tagger"], methods=[])
        capsys.readouterr()
        assert main([option.replace("chat", corpus) for option in command]) == 1
        assert "epsilon 2 and 2 of releases 'a' are 4, above" in capsys.readouterr().err
        # The gate asks anew: the budget may have been another one when the text was filled.
        allow(folder, epsilon_budget=None)
        fill(monkeypatch, corpus, techniques=["every_tagger"], methods=["counted"])
        allow(folder, epsilon_budget=3.0)
        with pytest.raises(PalimpsestError, match="epsilon 2 and 2 of releases 'a' are 4, above"):
            release(f"{corpus}/every_tagger/counted-1", "--name", "b", "--also", "a")
        with pytest.raises(PalimpsestError, match=r"released in 'a' \(30 lines.*and epsilons add up") as error:
            release(f"{corpus}/every_tagger/counted-1", "--name", "b")
        assert " 0 %" not in str(error.value)
    allow(folder, epsilon_budget=4.0)
    release("more/every_tagger/counted-1", "--name", "b", "--also", "a")
    assert [entry.spent for entry in read_ledger()] == [2.0, 4.0]
    assert main(["ledger"]) == 0
    said = capsys.readouterr().out
    assert "chat: epsilon 4 a line; budget 4" in said
    assert "more: epsilon 4 a line; budget 4" in said
