"""``params.yaml``: what is accepted, and what is said about what is not."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from tasks.errors import ParameterError
from tasks.parameters.parameter_file import read_parameters, read_sections
from tasks.settings.overrides import parse_overrides

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shipped():
    return yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def document(shipped):
    return deepcopy(shipped)


def put(document, path, value):
    """Set the value under a dotted key path."""
    *above, last = [int(key) if key.isdecimal() else key for key in path.split(".")]
    for key in above:
        document = document[key]
    document[last] = value


def read(document, tmp_path):
    """The parameters of a file with this document."""
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return read_parameters(path)


def problems_of(document, tmp_path) -> str:
    with pytest.raises(ParameterError) as error:
        read(document, tmp_path)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_numbers_are_those_of_dvc_in_the_file_and_on_a_command_line(document, tmp_path):
    put(document, "language_model.adaptation.learning_rate", 0.125)
    text = yaml.safe_dump(document).replace("learning_rate: 0.125", "learning_rate: 5e-5")
    (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
    assert read_parameters(tmp_path / "params.yaml").language_model.adaptation.learning_rate == 5e-5
    found = parse_overrides(["a=5e-5", "b=[1E3, 2.e+1]", "c=5e", "d=e5"])
    assert found == {"a": 5e-5, "b": [1e3, 20.0], "c": "5e", "d": "e5"}


def test_all_problems_at_once_each_with_its_key_path(document, tmp_path):
    document["filling"]["top_k"]["kk"] = 3
    document["masking"]["allow_list"]["kind"] = "alow_list"
    document["langage_model"] = {}
    document["language_model"]["architecture"]["layers"] = "three"
    text = problems_of(document, tmp_path)
    assert "4 problems" in text
    assert "filling.top_k.kk: unknown key (did you mean 'k'?)" in text
    assert "masking.allow_list: " in text
    assert "'allow_list' (did you mean" not in text.split("masking.allow_list")[0]
    assert "(did you mean 'allow_list'?)" in text
    assert "langage_model: unknown key (did you mean 'language_model'?)" in text
    assert "language_model.architecture.layers: " in text
    assert "(got 'three')" in text


MINILM = {"filler": "minilm", "methods": ["top_k"]}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("compare.techniques", ["allowlist"], ": 'allowlist' is no key of 'masking' that fits (did"),
        ("compare.datasets", ["mail"], "compare.speech_datasets: 'chat' is not one of compare.datasets (mail); write "
            "'compare.speech_datasets: []'"),
        ("audit.shadowed", ["chat/orcale-1"], "is not audited (did you mean 'chat/oracle-1'?); audited"),
        ("compare.fills.0.filler", "minlm",
            ": 'minlm' is no key of 'fillers' or 'tuned_fillers' that fits (did you mean"),
        ("compare.fills", [MINILM, {**MINILM, "techniques": ["allow_list"]}],
            ": the fill by 'top_k' with 'minilm' of 'allow_list' occurs twice; leave it out once"),
        ("language_model.architecture.heads", 3, "width 128 cannot be divided among 3 heads; give a width"),
        ("compare.fills", [{"filler": "minilm", "methods": ["free"]}],
            "compare.fills.0.methods: 'free' (method 'free') needs a causal language model, and 'minilm' is a masked "
            "one; take top_1, top_k or sample, or leave one of the two out"),
        # Tables and ratios know the references by these names alone.
        *((f"filling.{name}", {"kind": "unigram"}, f"filling: {name!r} is what tables call one of the models")
          for name in ("no_language_model", "baseline1")),
        ("language_model.architecture.width", 10**11, ": Input should be less than or equal to "),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_with_its_key_path(path, value, says, document, tmp_path):
    """``says`` follows the key path where it begins with a dot or a colon."""
    document["filling"]["free"] = {"kind": "free"}
    put(document, path, value)
    assert (f"{path}{says}" if says[0] in ".:" else says) in problems_of(document, tmp_path)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"compare.private": {"dp_sgd_8": {"epsilon": 8.0}}, "language_model.kind": "ngram"},
            ["compare.private: DP-SGD is for language_model.kind 'transformer', and it is 'ngram'"]),
        ({"compare.baselines": [], "compare.fills": []}, ["compare: baselines and fills are both empty"]),
        ({"compare.unlearned": ["theirs"], "language_model.kind": "ngram",
            "unlearning": {"methods": {"ours": {"kind": "steering"}}, "technique": "crf", "fill": "surrogate"}},
            ["compare.unlearned: 'theirs' is no key of 'unlearning.methods' that fits",
            "unlearning.technique: 'crf' is no key of 'compare.techniques' that fits",
            "compare.unlearned: language_model.kind 'ngram' has no weights to train"]),
        ({"compare.conclusions": {"chat": {"languages": ["en", "es"]}}},
            ["compare.conclusions: 'chat' is no key of 'corpora' with label_field of 'datasets' that fits",
            "conclusion: is missing, and compare.conclusions has some to be tested"]),
        ({"audit": None}, ["audit: is missing, and compare.fills has something that is audited"]),
    ],
)  # fmt: skip
def test_sections_that_do_not_fit_each_other_are_named(changes, says, document, tmp_path):
    """Also where a command reads a single section. ``None``: without the section."""
    for path, value in changes.items():
        put(document, path, value)
    document = {name: section for name, section in document.items() if section is not None}
    text = problems_of(document, tmp_path)
    assert [one for one in says if one not in text] == []
    with pytest.raises(ParameterError):
        read_sections(tmp_path / "params.yaml", ["filling.top_k"])


def test_a_full_audit_is_a_setting_beside_which_each_size_is_said(document, tmp_path):
    document["audit"] |= {"effort": "full", "places": 300}
    found = read(document, tmp_path).audit
    assert (found.sampled, found.shadow_models, found.places, found.canaries) == (20_000, 16, 300, 40)


SIZES = "language_model.adaptation.epochs filling.sample.temperature resources.time_limits.pretrain".split()
SEEDS = "compare.seeds.0 corpora.chat.cleaning.seed taggers.crf.seed speech.nbest.chat.dev.seed".split()


@pytest.mark.parametrize(
    ("paths", "value", "says"),
    [
        (SEEDS, -1, "greater than or equal to 0 (got -1)"),
        (SEEDS, 2**63, "less than"),
        (SIZES, float("inf"), "a finite number"),
        (SIZES, float("nan"), "a finite number"),
    ],
)
def test_no_seed_and_no_number_that_cannot_be_used_is_accepted_wherever_it_stands(
    paths, value, says, document, tmp_path
):
    lists = {"source": "lists.jsonl"}
    document["speech"]["nbest"] = {"chat": {"dev": dict(lists), "test": dict(lists)}}
    document["resources"]["time_limits"] = {}
    for path in paths:
        put(document, path, value)
    text = problems_of(document, tmp_path)
    assert f": {len(paths)} problems: " in text
    assert [path for path in paths if f"{path}: Input should be {says}" not in text] == []


def test_an_unknown_section_has_its_nearest_spelling():
    with pytest.raises(ParameterError, match=r"no section 'filling\.topk'.*did you mean 'top_k'"):
        read_sections(ROOT / "params.yaml", ["filling.topk"])
