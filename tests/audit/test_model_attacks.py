"""Attacks on language models that learn by heart what they see: n-gram models, which are trained in a second."""

import json
import random
import shutil
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import yaml

from tasks.audit import attacks
from tasks.audit.attacked import AttackedModel, AttackSettings, Shadow
from tasks.audit.canaries import make_canaries
from tasks.audit.exposure import null_exposure
from tasks.audit.extraction import extraction
from tasks.audit.figure import Figure
from tasks.audit.line_scores import score_lines, score_references
from tasks.audit.membership import auc
from tasks.audit.model_attacks import canary_exposure, membership, neighbourhood
from tasks.audit.twin import TwinText
from tasks.cli import main
from tasks.corpora.sources.published_frequencies import published_counts
from tasks.corpora.text_lines import write_lines
from tasks.language_model.evaluation.perplexity import word_ranks
from tasks.language_model.opening import open_language_model

LINES = 1600
WORDS = ["where", "when", "people", "think", "about", "time", "because", "other", "work", "world", "still", "never"]
SETTINGS = AttackSettings(canaries=8, coins=200, references=1023, bootstrap_samples=200, sampled=400, neighboured=80)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A private text of drawn words, generic text of the same, word counts and a generic language model."""
    folder = tmp_path_factory.mktemp("audit")
    counts = folder / "counts.tsv"
    generic = sentences(3000, "generic")
    write_lines(folder / "generic.txt", generic)
    write_lines(folder / "valid.txt", sentences(200, "valid"))
    write_lines(folder / "members.txt", sentences(LINES, "members"))
    (folder / "corpus").mkdir()
    for part, source in (("train", "members"), ("valid", "valid")):
        shutil.copy(folder / f"{source}.txt", folder / "corpus" / f"{part}.txt")
    run("count-words", "--input", folder / "generic.txt", "--output", counts)
    run("vocabulary", "--word-counts", counts, "--output", folder / "vocabulary.txt")
    options = ["--input", folder / "generic.txt", "--vocabulary", folder / "vocabulary.txt", "--set", "kind=ngram"]
    run("pretrain", *options, "--output", folder / "generic_model")
    document = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text(encoding="utf-8"))
    document["language_model"]["kind"] = "ngram"
    document["audit"] = SETTINGS.model_dump(exclude_unset=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder


def sentences(number, seed):
    """Of words that anybody uses, and of those that canaries are made of, so that a model knows them all."""
    chance = random.Random(seed)
    words = [word for word, _ in published_counts()][:12_000]
    words += list(map(str, range(10, 99)))
    return [" ".join([chance.choice(WORDS), *chance.choices(words, k=7)]) for _ in range(number)]


def members_and_others():
    """Lines, half of which a model was trained on, which these are, and the document of each."""
    lines = [*sentences(LINES, "members"), *sentences(LINES, "others")]
    return lines, np.repeat([True, False], LINES), [str(number // 20) for number in range(2 * LINES)]


def adapted(place, name, lines):
    write_lines(place / f"{name}.txt", lines)
    options = ["--model", place / "generic_model", "--input", place / f"{name}.txt", "--valid", place / "valid.txt"]
    run("adapt", *options, "--output", place / name, "--set", "ngram.generic_weight=0.5")
    return open_language_model(place / name)


def run(*words):
    assert main([str(word) for word in words]) == 0


@pytest.fixture(scope="module")
def canaries(place):
    ranks = word_ranks(str(place / "counts.tsv"))
    return make_canaries(ranks, 8, [4, 16], 1023, 200, 1)


@pytest.fixture(scope="module")
def models(place, canaries):
    """The generic model, one of the text alone, and one of the text with the canaries."""
    text = (place / "members.txt").read_text(encoding="utf-8").splitlines()
    found = {"generic": open_language_model(place / "generic_model")}
    planted = [canary.text for canary in canaries.planted for _ in range(canary.repetitions)]
    for name, lines in {"innocent": text, "planted": [*text, *planted]}.items():
        found[name] = adapted(place, name, lines)
    return found


def exposure(models, name, canaries):
    attacked = AttackedModel(models[name], [], np.array([]), [], SETTINGS, base=models["generic"], canaries=canaries)
    return canary_exposure(attacked)


def test_a_model_that_was_not_adapted_remembers_nothing(models, canaries, place):
    found = exposure(models, "generic", canaries)
    for name, figure in found.items():
        if name.startswith("exposure"):
            assert figure.value == pytest.approx(null_exposure(1023)), name
    assert found["epsilon_lower_bound"].value == 0.0
    lines = sentences(800, "members")
    is_member = np.arange(800) % 2 == 0
    before = score_lines(models["generic"], lines)
    documents = list("ab") * 400
    told = membership(AttackedModel(models["generic"], lines, is_member, documents, SETTINGS, before=before))
    assert told["membership_auc"].value == pytest.approx(0.5)
    assert told["membership_tpr_1"].value == 0.0


def test_canaries_that_were_never_planted_are_not_found(models, canaries):
    found = exposure(models, "innocent", canaries)
    for name, figure in found.items():
        if name.startswith("exposure"):
            assert figure.value == pytest.approx(null_exposure(1023), abs=2.2), name
    assert found["epsilon_lower_bound"].value < 0.5


def test_what_stands_sixteen_times_in_the_text_is_remembered(models, canaries):
    found = exposure(models, "planted", canaries)
    for name in ("exposure", "exposure_unmasked", "exposure_figures"):
        assert found[name].value > 8, name
        assert found[name].interval[0] > found[name].blind
        beyond = found[name.replace("exposure", "exposure_extrapolated")]
        assert beyond.value > found[name].value
    assert found["epsilon_lower_bound"].value > 1
    sixteen = [c.text for c in canaries.planted if (c.family, c.form, c.repetitions) == ("kept", 0, 16)]
    of_form = {("kept", 0): [*sixteen, *canaries.references["kept", 0]]}
    after, before = (score_references(models[name], of_form)["kept", 0] for name in ("planted", "generic"))
    scores = after - before
    assert auc(scores[: len(sixteen)], scores[len(sixteen) :]) > 0.99


def test_members_are_told_from_others_and_shuffled_ones_are_not(models, place):
    lines, is_member, documents = members_and_others()
    before = score_lines(models["generic"], lines)

    def attacked(name, is_member=is_member, before=None):
        return AttackedModel(models[name], lines, is_member, documents, SETTINGS, before=before)

    told = membership(attacked("innocent", before=before))
    assert told["membership_auc"].value > 0.95
    assert told["membership_auc"].interval[0] > told["membership_auc"].blind
    assert abs(told["membership_auc"].blind - 0.5) < 0.05
    nothing = membership(attacked("innocent", np.random.default_rng(1).permutation(is_member), before))
    assert nothing["membership_auc"].interval[0] < 0.5 < nothing["membership_auc"].interval[1]
    # Without the model before, the scores of the attacked one alone, or beside those of lines like it.
    near = neighbourhood(attacked("innocent"))
    assert near["membership_neighbourhood_auc"].value > 0.8
    assert near["membership_neighbourhood_auc"].places == 80
    near = neighbourhood(attacked("generic"))
    assert near["membership_neighbourhood_auc"].interval[0] < 0.5 < near["membership_neighbourhood_auc"].interval[1]
    alone = membership(attacked("innocent"))
    assert alone["membership_auc"].value > 0.9
    assert "before" not in alone["membership_auc"].attacker


def test_lines_that_a_model_writes_are_told_from_those_that_it_has_not_seen(models, place):
    lines, is_member, documents = members_and_others()

    def written(name, member=is_member):
        model = open_language_model(place / name)
        return extraction(AttackedModel(model, lines, member, documents, SETTINGS))["extracted"]

    told = written("innocent")
    assert told.interval[0] > 0.01 > told.blind
    # With nothing to find: shuffled members, and the model before. The interval is that of the figure alone, so it may
    # miss the other one, which is as uncertain.
    shuffled = [written("innocent", np.random.default_rng(seed).permutation(is_member)) for seed in range(10)]
    assert sum(figure.interval[0] <= figure.blind <= figure.interval[1] for figure in shuffled) >= 6
    difference = np.mean([figure.value - figure.blind for figure in shuffled])
    assert abs(difference) < (told.value - told.blind) / 2
    assert max(figure.value for figure in shuffled) > 0.01
    before = written("generic_model")
    assert before.interval[0] == before.value == before.blind == 0 < before.interval[1]


def test_shadow_models_tell_members_and_nothing_where_none_are(models, place):
    lines, is_member, documents = members_and_others()
    twin = TwinText(lines, documents, is_member, [], seed=1)
    drawn = twin.shadows(4, 0.25)
    assert drawn.sum(axis=0).tolist() == [2] * (2 * LINES)
    shadows = []
    for number, member in enumerate(drawn):
        shadow = adapted(place, f"shadow_{number}", [line for line, _ in twin.of(member)])
        shadows.append(Shadow(score_lines(shadow, lines).means, member))

    before = score_lines(models["generic"], lines)

    def told(name):
        attacked = AttackedModel(models[name], lines, is_member, documents, SETTINGS, before=before, shadows=shadows)
        return membership(attacked)

    assert told("innocent")["membership_lira_auc"].value > 0.98
    assert told("innocent")["membership_lira_tpr_1"].interval[0] > 0.5
    low, high = told("generic")["membership_lira_auc"].interval
    assert low < 0.5 < high


def highest_line(attacked):
    """An attack of another package: the most probable line is guessed to be a member."""
    scores = score_lines(attacked.model, attacked.lines)
    guess = int(scores.lines[scores.means.argmax()])
    return {"highest_line": Figure(float(attacked.is_member[guess]), None, "guesses one line", places=1)}


def test_an_attack_of_another_package_is_one_function_and_one_entry_point(models, place, monkeypatch):
    point = EntryPoint("highest_line", f"{__name__}:highest_line", attacks.MODEL_GROUP)
    monkeypatch.setattr(attacks, "entry_points", lambda group: [point] if group == point.group else [])
    write_lines(place / "others.txt", sentences(400, "others"))
    given = ["--members", place / "members.txt", "--non-members", place / "others.txt", "--set", "sampled=0"]
    run("audit", *given, "--model", place / "innocent", "--report", place / "report.json")
    measured = json.loads((place / "report.json").read_text(encoding="utf-8"))["measured"]
    assert (measured["highest_line"], measured["highest_line_places"]) == (1.0, 1)
    assert measured["attackers"]["highest_line"] == "guesses one line"
    assert measured["membership_auc"] > 0.8


def test_text_and_models_of_any_origin_are_attacked(models, place, capsys):
    write_lines(place / "others.txt", sentences(400, "others"))
    report = place / "report.json"
    given = ["--members", place / "members.txt", "--non-members", place / "others.txt"]
    run("audit", *given, "--model", place / "innocent", "--base", place / "generic_model", "--report", report)
    assert "membership_auc: " in capsys.readouterr().out
    measured = json.loads(report.read_text(encoding="utf-8"))["measured"]
    assert measured["membership_auc"] > 0.9
    assert measured["attackers"]["membership_auc"]
    released = place / "released.txt"
    write_lines(released, [line.replace("people", "[PERSON]") for line in sentences(LINES, "members")])
    run("audit", "--members", place / "members.txt", "--text", released, "--report", report)
    measured = json.loads(report.read_text(encoding="utf-8"))["measured"]
    assert 0.5 < measured["verbatim_lines"] < 1
    assert measured["unmasked_direct"] is not None


@pytest.mark.parametrize("change", [str, str.upper, lambda line: f"  {line} !"], ids=["same", "capitals", "marks"])
def test_members_among_the_non_members_are_left_out_and_counted(models, place, capsys, change):
    members, others = sentences(LINES, "members"), sentences(400, "others")
    write_lines(place / "others.txt", others)
    write_lines(place / "mixed.txt", [*map(change, members[:150]), *others])
    measured = []
    for name in ("others.txt", "mixed.txt"):
        given = ["--members", place / "members.txt", "--non-members", place / name, "--model", place / "innocent"]
        run("audit", *given, "--base", place / "generic_model", "--report", place / "report.json")
        measured.append(json.loads((place / "report.json").read_text(encoding="utf-8")))
    assert measured[0]["measured"]["membership_auc"] == measured[1]["measured"]["membership_auc"]
    assert measured[0]["warnings"] == []
    assert measured[1]["warnings"][0].startswith("150 of 550 lines of --non-members")
    write_lines(place / "few.txt", [*map(change, members[:150]), *others[:9]])
    given = ["--members", place / "members.txt", "--non-members", place / "few.txt", "--model", place / "innocent"]
    assert main(["audit", *map(str, given)]) == 1
    assert "150 of 159 lines of --non-members" in capsys.readouterr().err


@pytest.mark.parametrize("filled", [False, True])
def test_a_twin_of_raw_and_of_masked_and_filled_text(filled, place, capsys):
    """What masking hides is remembered of raw text alone; what it keeps, of both."""
    common = ["--params", place / "params.yaml", "--members", place / "corpus", "--base", place / "generic_model"]
    common += ["--word-counts", place / "counts.tsv", "--report", place / "report.json"]
    if filled:
        folder = place / "masked" / "allow_list"
        folder.mkdir(parents=True)
        masked, sidecar, kept = folder / "text.txt", folder / "sidecar.jsonl", folder / "allowed_words.txt"
        options = ["--technique", "allow_list", "--input", place / "members.txt", "--output", masked]
        run("mask", *options, "--sidecar", sidecar, "--allowed-words", kept)
        options = ["--method", "unigram", "--input", masked, "--allowed-words", kept, "--output", place / "filled.txt"]
        run("fill", *options, "--word-counts", place / "counts.tsv")
        own = ["--technique", "allow_list", "--method", "unigram", "--seed", "1", "--masked", place / "masked"]
        run("audit", *common, *own, "--text", place / "filled.txt")
    else:
        own = ["--method", "oracle", "--seed", "1", "--text", place / "members.txt", "--set", "shadow_models=4"]
        run("audit", *common, *own)
    said = capsys.readouterr()
    measured = json.loads((place / "report.json").read_text(encoding="utf-8"))["measured"]
    shares = measured["canaries_masked"]
    assert measured["exposure_unmasked"] > 9
    if filled:
        assert (shares["kept"], shares["figures"]) == (0.0, 1.0)
        assert shares["masked"] > 0.9
        assert measured["exposure"] < 3 < measured["exposure_unmasked"]
        assert measured["exposure_figures"] < 3
        assert measured["extracted_masked_ci"][0] <= measured["extracted_masked_blind"] < 0.01
        assert measured["reidentified_1_places"] == 1000
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
    shown = (place / "report.json").read_text(encoding="utf-8") + said.out + said.err
    for line in sentences(5, "members"):
        assert " ".join(line.split()[:3]) not in shown
    assert not list((place / ".palimpsest").rglob("*.txt"))


def test_what_cannot_be_attacked_is_one_line(place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    write_lines(place / "short.txt", ["one line"])
    (place / "other").mkdir(exist_ok=True)
    shutil.copy("members.txt", "other/train.txt")
    shutil.copy("short.txt", "other/train.documents")
    for options, says in (
        ([], "nothing to attack: give --text, or --model with --non-members"),
        (["--model", "m"], "--model needs --non-members"),
        (["--text", "members.txt", "--base", "generic_model"], "needs --params, --text and --word-counts"),
        (["--text", "short.txt"], "not equally many lines"),
        (
            ["--model", "generic_model", "--non-members", "members.txt"],
            "lines of --non-members 'members.txt' are in --members too, so fewer than 10 others are left",
        ),
        (["--model", "nowhere", "--non-members", "short.txt"], "model 'nowhere' is neither a folder nor"),
        (["--text", "members.txt", "--members", "other"], "'other/train.documents' has 1 lines, and"),
    ):
        assert main(["audit", "--members", "members.txt", *options]) == 1
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1
