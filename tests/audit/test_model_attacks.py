"""Attacks on language models that learn by heart what they see: n-gram models, which are trained in a second."""

import json
import random
from functools import cache
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from changed_parameters import parameters, write_parameters
from command_results import refusal
from ngram_models import adapted, pretrained, run

from tasks.audit import attacks
from tasks.audit.attacked import AttackedModel, AttackSettings
from tasks.audit.canaries import make_canaries
from tasks.audit.exposure import canary_exposure, null_exposure
from tasks.audit.figure import Figure
from tasks.audit.line_scores import score_lines
from tasks.audit.model_attacks import membership, neighbourhood
from tasks.corpora.sources.published_frequencies import published_counts
from tasks.corpora.text_lines import write_lines
from tasks.language_model.evaluation.perplexity import word_ranks
from tasks.language_model.opening import open_language_model

LINES = 1600
WORDS = ["where", "when", "people", "think", "about", "time", "because", "other", "work", "world", "still", "never"]
SETTINGS = AttackSettings(
    canaries=8, coins=200, references=1023, bootstrap_samples=200, sampled=400, neighboured=50, places=100
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
    pretrained(folder, "generic.txt")
    model = parameters()["language_model"] | {"kind": "ngram"}
    write_parameters(folder, language_model=model, audit=SETTINGS.model_dump(exclude_unset=True))
    return folder


@pytest.fixture(scope="module")
def canaries(place):
    return make_canaries(word_ranks(str(place / "counts.tsv")), 8, [4, 16], 1023, 200, 1)


@pytest.fixture(scope="module")
def models(place):
    """The generic model, and one of the text alone."""
    names = {"generic": "generic_model", "innocent": "innocent"}
    adapted(place, "innocent", sentences(LINES, "members"))
    return {name: open_language_model(place / folder) for name, folder in names.items()}


@pytest.fixture(scope="module")
def lines():
    """Half of them are those of the text."""
    return [*sentences(LINES, "members"), *sentences(LINES, "others")]


@pytest.fixture(scope="module")
def before(models, lines):
    return score_lines(models["generic"], lines)


def attacked(model, lines, is_member=IS_MEMBER, **more):
    return AttackedModel(model, lines, is_member, DOCUMENTS, SETTINGS, **more)


@pytest.mark.parametrize(("name", "near", "epsilon"), [("generic", 1e-9, 0.0), ("innocent", 2.2, 0.5)])
def test_canaries_that_were_never_planted_are_not_found(models, canaries, name, near, epsilon):
    attack = AttackedModel(models[name], [], np.array([]), [], SETTINGS, base=models["generic"], canaries=canaries)
    found = canary_exposure(attack)
    bits = [figure.value for figure_name, figure in found.items() if figure_name.startswith("exposure")]
    assert len(bits) == 12
    assert bits == pytest.approx([null_exposure(1023)] * 12, abs=near)
    assert found["epsilon_lower_bound"].value <= epsilon


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
    assert unseen.interval[0] < 0.5 < unseen.interval[1]


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
    attack = ["--model", place / "innocent", "--base", place / "generic_model", "--set", "sampled=0", "--non-members"]
    alone, among = (audited(place, *attack, place / name) for name in ("others.txt", "mixed.txt"))
    assert "membership_auc: " in capsys.readouterr().out
    assert alone["measured"]["membership_auc"] == among["measured"]["membership_auc"] > 0.9
    assert alone["measured"]["attackers"]["membership_auc"]
    assert alone["warnings"] == []
    assert among["warnings"][0].startswith("150 of 550 lines of --non-members")
    said = refusal("audit", "--members", place / "members.txt", *attack, place / "members.txt")
    assert "so fewer than 10 others are left" in said


def test_a_text_of_any_origin_is_attacked(place):
    write_lines(place / "some.txt", sentences(80, "valid"))
    write_lines(place / "released.txt", [line.replace("people", "[PERSON]") for line in sentences(80, "valid")])
    measured = audited(place, "--members", place / "some.txt", "--text", place / "released.txt")["measured"]
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
        assert measured["reidentified_1_places"] == 100
        assert measured["linked_mentions_blind"] is not None
        # Draws by frequency agree by chance alone.
        assert measured["found_by_second_fill"] > 0.9 > 0.01 > measured["found_by_second_fill_blind"]
    else:
        assert shares == {"kept": 0.0, "masked": 0.0, "figures": 0.0}
        for family in ("", "_unmasked", "_figures"):
            assert measured[f"exposure{family}_ci"][0] > measured[f"exposure{family}_blind"]
            assert measured[f"exposure_extrapolated{family}"] > measured[f"exposure{family}"] > 8
        assert measured["exposure"] > 9
        assert measured["epsilon_lower_bound"] > 1
        assert measured["verbatim_lines"] == 1
        assert measured["membership_lira_auc"] > 0.95
        assert measured["extracted_ci"][0] > measured["extracted_blind"]
        assert "extracted_masked" not in measured
    # Numbers, and no word of the text: not in the report, not on the screen.
    shown = report.read_text(encoding="utf-8") + said.out + said.err
    assert not [line for line in sentences(LINES, "members")[:5] if " ".join(line.split()[:3]) in shown]
    assert not list((place / ".palimpsest").rglob("*.txt"))
