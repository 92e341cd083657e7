"""Attacks on language models that learn by heart what they see: n-gram models, which are trained in a second."""

import json
import random
import shutil
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import yaml

from tasks.audit import attacks
from tasks.audit.attacked import AttackedModel, AttackSettings, Shadow
from tasks.audit.canaries import make_canaries
from tasks.audit.exposure import canary_exposure, null_exposure
from tasks.audit.extraction import extraction
from tasks.audit.figure import Figure
from tasks.audit.line_scores import score_lines, score_references
from tasks.audit.membership import auc
from tasks.audit.model_attacks import membership, neighbourhood
from tasks.audit.twin import TwinText
from tasks.cli import main
from tasks.corpora.sources.published_frequencies import published_counts
from tasks.corpora.text_lines import write_lines
from tasks.language_model.evaluation.perplexity import word_ranks
from tasks.language_model.opening import open_language_model

LINES = 1600
WORDS = ["where", "when", "people", "think", "about", "time", "because", "other", "work", "world", "still", "never"]
SETTINGS = AttackSettings(
    canaries=8, coins=200, references=1023, bootstrap_samples=200, sampled=400, neighboured=80, places=200
)
IS_MEMBER = np.repeat([True, False], LINES)
DOCUMENTS = [str(number // 20) for number in range(2 * LINES)]


@cache
def known_words():
    """Those that anybody uses, and those that canaries are made of, so that a model knows them all."""
    return [word for word, _ in published_counts()[:12_000]] + list(map(str, range(10, 99)))


@cache
def sentences(number, seed):
    chance = random.Random(seed)
    return [" ".join([chance.choice(WORDS), *chance.choices(known_words(), k=7)]) for _ in range(number)]


def run(*words):
    assert main([str(word) for word in words]) == 0


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A private text of drawn words, generic text of the same, word counts and a generic language model."""
    folder = tmp_path_factory.mktemp("audit")
    (folder / "corpus").mkdir()
    for name, number, seed in (
        ("generic.txt", 3000, "generic"), ("valid.txt", 200, "valid"), ("members.txt", LINES, "members"),
        ("others.txt", 400, "others"), ("corpus/train.txt", LINES, "members"), ("corpus/valid.txt", 200, "valid"),
    ):  # fmt: skip
        write_lines(folder / name, sentences(number, seed))
    counts, vocabulary = folder / "counts.tsv", folder / "vocabulary.txt"
    generic = ["--input", folder / "generic.txt"]
    run("count-words", *generic, "--output", counts)
    run("vocabulary", "--word-counts", counts, "--output", vocabulary)
    run("pretrain", *generic, "--vocabulary", vocabulary, "--set", "kind=ngram", "--output", folder / "generic_model")
    document = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text(encoding="utf-8"))
    document["language_model"]["kind"] = "ngram"
    document["audit"] = SETTINGS.model_dump(exclude_unset=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder


def adapted(place, name, lines):
    write_lines(place / f"{name}.txt", lines)
    options = ["--model", place / "generic_model", "--input", place / f"{name}.txt", "--valid", place / "valid.txt"]
    run("adapt", *options, "--output", place / name, "--set", "ngram.generic_weight=0.5")
    return open_language_model(place / name)


@pytest.fixture(scope="module")
def canaries(place):
    return make_canaries(word_ranks(str(place / "counts.tsv")), 8, [4, 16], 1023, 200, 1)


@pytest.fixture(scope="module")
def models(place, canaries):
    """The generic model, one of the text alone, and one of the text with the canaries."""
    text = sentences(LINES, "members")
    planted = [canary.text for canary in canaries.planted for _ in range(canary.repetitions)]
    return {
        "generic": open_language_model(place / "generic_model"),
        "innocent": adapted(place, "innocent", text),
        "planted": adapted(place, "planted", [*text, *planted]),
    }


@pytest.fixture(scope="module")
def lines():
    """Half of them are those of the text."""
    return [*sentences(LINES, "members"), *sentences(LINES, "others")]


@pytest.fixture(scope="module")
def before(models, lines):
    return score_lines(models["generic"], lines)


def attacked(model, lines, is_member=IS_MEMBER, **more):
    return AttackedModel(model, lines, is_member, DOCUMENTS, SETTINGS, **more)


def exposure(models, name, canaries):
    return canary_exposure(AttackedModel(models[name], [], np.array([]), [], SETTINGS, base=models["generic"],
                                         canaries=canaries))  # fmt: skip


@pytest.mark.parametrize(("name", "near", "epsilon"), [("generic", 1e-9, 0.0), ("innocent", 2.2, 0.5)])
def test_canaries_that_were_never_planted_are_not_found(models, canaries, name, near, epsilon):
    found = exposure(models, name, canaries)
    bits = [figure.value for figure_name, figure in found.items() if figure_name.startswith("exposure")]
    assert len(bits) == 12
    assert bits == pytest.approx([null_exposure(1023)] * 12, abs=near)
    assert found["epsilon_lower_bound"].value <= epsilon


def test_what_stands_sixteen_times_in_the_text_is_remembered(models, canaries):
    found = exposure(models, "planted", canaries)
    for name in ("exposure", "exposure_unmasked", "exposure_figures"):
        assert found[name].value > 8, name
        assert found[name].interval[0] > found[name].blind
        assert found[name.replace("exposure", "exposure_extrapolated")].value > found[name].value
    assert found["epsilon_lower_bound"].value > 1
    sixteen = [c.text for c in canaries.planted if (c.family, c.form, c.repetitions) == ("kept", 0, 16)]
    of_form = {("kept", 0): [*sixteen, *canaries.references["kept", 0]]}
    after, unknowing = (score_references(models[name], of_form)["kept", 0] for name in ("planted", "generic"))
    assert auc(after - unknowing, np.arange(len(after)) < len(sixteen)) > 0.99


def test_members_are_told_from_others_and_neither_shuffled_ones_nor_by_a_model_before_it_saw_them(
    models, lines, before
):
    told = membership(attacked(models["innocent"], lines, before=before))["membership_auc"]
    assert told.value > 0.95
    assert told.interval[0] > told.blind
    assert abs(told.blind - 0.5) < 0.05
    shuffled = np.random.default_rng(1).permutation(IS_MEMBER)
    low, high = membership(attacked(models["innocent"], lines, shuffled, before=before))["membership_auc"].interval
    assert low < 0.5 < high
    same = membership(attacked(models["generic"], lines, before=before))
    assert (same["membership_auc"].value, same["membership_tpr_1"].value) == (pytest.approx(0.5), 0.0)
    # Without the model before, the scores of the attacked one alone, or beside those of lines like it.
    alone = membership(attacked(models["innocent"], lines))["membership_auc"]
    assert alone.value > 0.9
    assert "before" not in alone.attacker
    near, unseen = (
        neighbourhood(attacked(models[name], lines))["membership_neighbourhood_auc"] for name in ("innocent", "generic")
    )
    assert near.value > 0.8
    assert near.places == 80
    assert unseen.interval[0] < 0.5 < unseen.interval[1]


def test_lines_that_a_model_writes_are_told_from_those_that_it_has_not_seen(models, place, lines):
    def written(name, is_member=IS_MEMBER):
        return extraction(attacked(open_language_model(place / name), lines, is_member))["extracted"]

    told = written("innocent")
    assert told.interval[0] > 0.01 > told.blind
    # With nothing to find: shuffled members, and the model before. The interval is that of the figure alone, so it may
    # miss the other one, which is as uncertain.
    shuffled = [written("innocent", np.random.default_rng(seed).permutation(IS_MEMBER)) for seed in range(10)]
    assert sum(figure.interval[0] <= figure.blind <= figure.interval[1] for figure in shuffled) >= 6
    difference = np.mean([figure.value - figure.blind for figure in shuffled])
    assert abs(difference) < (told.value - told.blind) / 2
    assert max(figure.value for figure in shuffled) > 0.01
    unseen = written("generic_model")
    assert unseen.interval[0] == unseen.value == unseen.blind == 0 < unseen.interval[1]


def test_shadow_models_tell_members_and_nothing_where_none_are(models, place, lines, before):
    twin = TwinText(lines, DOCUMENTS, IS_MEMBER, [], seed=1)
    drawn = twin.shadows(4, 0.25)
    assert drawn.sum(axis=0).tolist() == [2] * (2 * LINES)
    shadows = []
    for number, member in enumerate(drawn):
        shadow = adapted(place, f"shadow_{number}", [line for line, _ in twin.of(member)])
        shadows.append(Shadow(score_lines(shadow, lines).means, member))
    told, nothing = (
        membership(attacked(models[name], lines, before=before, shadows=shadows)) for name in ("innocent", "generic")
    )
    assert told["membership_lira_auc"].value > 0.98
    assert told["membership_lira_tpr_1"].interval[0] > 0.5
    low, high = nothing["membership_lira_auc"].interval
    assert low < 0.5 < high


def highest_line(attacked):
    """An attack of another package: the most probable line is guessed to be a member."""
    scores = score_lines(attacked.model, attacked.lines)
    guess = int(scores.lines[scores.means.argmax()])
    return {"highest_line": Figure(float(attacked.is_member[guess]), None, "guesses one line", places=1)}


def audited(place, *options):
    """The report of an audit of the private text."""
    run("audit", "--members", place / "members.txt", *options, "--report", place / "report.json")
    return json.loads((place / "report.json").read_text(encoding="utf-8"))


def test_an_attack_of_another_package_is_one_function_and_one_entry_point(models, place, monkeypatch):
    point = EntryPoint("highest_line", f"{__name__}:highest_line", "palimpsest.model_attacks")
    monkeypatch.setattr(attacks, "entry_points", lambda group: [point] if group == point.group else [])
    given = ["--non-members", place / "others.txt", "--model", place / "innocent", "--set", "sampled=0"]
    measured = audited(place, *given)["measured"]
    assert (measured["highest_line"], measured["highest_line_places"]) == (1.0, 1)
    assert measured["attackers"]["highest_line"] == "guesses one line"
    assert measured["membership_auc"] > 0.8


def test_models_of_any_origin_are_attacked_without_the_members_among_the_non_members(models, place, capsys):
    """In capitals and with other marks, too."""
    members, changes = sentences(LINES, "members"), (str, str.upper, lambda line: f"  {line} !")
    mixed = [change(line) for change in changes for line in members[:50]]
    write_lines(place / "mixed.txt", [*mixed, *sentences(400, "others")])
    attack = ["--model", place / "innocent", "--base", place / "generic_model", "--non-members"]
    alone, among = (audited(place, *attack, place / name) for name in ("others.txt", "mixed.txt"))
    assert "membership_auc: " in capsys.readouterr().out
    assert alone["measured"]["membership_auc"] == among["measured"]["membership_auc"] > 0.9
    assert alone["measured"]["attackers"]["membership_auc"]
    assert alone["warnings"] == []
    assert among["warnings"][0].startswith("150 of 550 lines of --non-members")


def test_a_text_of_any_origin_is_attacked(place):
    write_lines(place / "released.txt", [line.replace("people", "[PERSON]") for line in sentences(200, "valid")])
    measured = audited(place, "--members", place / "valid.txt", "--text", place / "released.txt")["measured"]
    assert 0.5 < measured["verbatim_lines"] < 1
    assert measured["unmasked_direct"] is not None


def mask_and_fill(place):
    """The options of an audit of the text, masked by a list and filled by frequency."""
    folder = place / "masked" / "allow_list"
    folder.mkdir(parents=True)
    masked, kept, filled = folder / "text.txt", folder / "allowed_words.txt", place / "filled.txt"
    outputs = ["--output", masked, "--sidecar", folder / "sidecar.jsonl", "--allowed-words", kept]
    run("mask", "--technique", "allow_list", "--input", place / "members.txt", *outputs)
    given = ["--input", masked, "--allowed-words", kept, "--word-counts", place / "counts.tsv"]
    run("fill", "--method", "unigram", *given, "--output", filled)
    return ["--technique", "allow_list", "--method", "unigram", "--masked", place / "masked", "--text", filled]


@pytest.mark.parametrize("filled", [False, True])
def test_a_twin_of_raw_and_of_masked_and_filled_text(filled, place, capsys):
    """What masking hides is remembered of raw text alone; what it keeps, of both."""
    raw = ["--method", "oracle", "--text", place / "members.txt", "--set", "shadow_models=4"]
    own = mask_and_fill(place) if filled else raw
    common = ["--params", place / "params.yaml", "--members", place / "corpus", "--base", place / "generic_model"]
    report = place / "report.json"
    run("audit", *common, *own, "--seed", "1", "--word-counts", place / "counts.tsv", "--report", report)
    said = capsys.readouterr()
    measured = json.loads(report.read_text(encoding="utf-8"))["measured"]
    shares = measured["canaries_masked"]
    assert measured["exposure_unmasked"] > 9
    if filled:
        assert (shares["kept"], shares["figures"]) == (0.0, 1.0)
        assert shares["masked"] > 0.9
        assert measured["exposure"] < 3 < measured["exposure_unmasked"]
        assert measured["exposure_figures"] < 3
        assert measured["extracted_masked_ci"][0] <= measured["extracted_masked_blind"] < 0.01
        assert measured["reidentified_1_places"] == 200
        assert measured["linked_mentions_blind"] is not None
        # Draws by frequency agree by chance alone.
        assert measured["found_by_second_fill"] > 0.9 > 0.01 > measured["found_by_second_fill_blind"]
    else:
        assert shares == {"kept": 0.0, "masked": 0.0, "figures": 0.0}
        assert measured["exposure"] > 9
        assert measured["verbatim_lines"] == 1
        assert measured["membership_lira_auc"] > 0.95
        assert measured["extracted_ci"][0] > measured["extracted_blind"]
        assert "extracted_masked" not in measured
    # Numbers, and no word of the text: not in the report, not on the screen.
    shown = report.read_text(encoding="utf-8") + said.out + said.err
    assert not [line for line in sentences(LINES, "members")[:5] if " ".join(line.split()[:3]) in shown]
    assert not list((place / ".palimpsest").rglob("*.txt"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "nothing to attack: give --text, or --model with --non-members"),
        (["--model", "m"], "--model needs --non-members"),
        (["--text", "members.txt", "--base", "generic_model"], "needs --params, --text and --word-counts"),
        (["--text", "short.txt"], "not equally many lines"),
        (["--model", "generic_model", "--non-members", "members.txt"], "so fewer than 10 others are left"),
        (["--text", "members.txt", "--members", "other"], "'other/train.documents' has 1 lines, and"),
    ],
)
def test_what_cannot_be_attacked_is_one_line(options, says, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    write_lines(place / "short.txt", ["one line"])
    (place / "other").mkdir(exist_ok=True)
    shutil.copy("members.txt", "other/train.txt")
    shutil.copy("short.txt", "other/train.documents")
    assert main(["audit", "--members", "members.txt", *options]) == 1
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
