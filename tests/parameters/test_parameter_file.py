"""``params.yaml``: what is accepted, and what is said about what is not."""

from pathlib import Path

import pytest
import yaml

from tasks.audit.settings import AuditSettings
from tasks.errors import ParameterError
from tasks.parameters.parameter_file import read_parameters, read_sections
from tasks.settings.overrides import parse_overrides

ROOT = Path(__file__).parents[2]


@pytest.fixture
def document():
    return yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))


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


def test_the_shipped_file_is_valid():
    parameters = read_parameters(ROOT / "params.yaml")
    assert parameters.compare.techniques == ["allow_list", "every_tagger"]


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
TUNED = {"filler": "minilm_tuned", "methods": ["top_1"]}
TUNED_BASE = "tuned_fillers.minilm_tuned.base"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("resources.cluster", {"address": "ray://127.0.0.1:1"}, ".address: String should match pattern"),
        ("compare.techniques", ["allowlist"], ": 'allowlist' is no key of 'masking' that fits (did"),
        ("compare.baselines", ["x"], ".0: Input should be 'baseline0', 'baseline1', 'redacted' or 'dropped'"),
        ("compare.seeds", [1, 1], ": a name occurs twice in [1, 1]"),
        ("compare.private", {"oracle": {"epsilon": 8.0}}, ": 'oracle' is what tables call one of the"),
        ("compare.private", {"top_k": {"epsilon": 8.0}}, "filling: 'top_k' is what tables call one of the models"),
        ("compare.private", {"x": {"epsilon": 0.01}}, ".x.epsilon: Input should be greater than or equal"),
        ("compare.datasets", ["mail"], "compare.speech_datasets: 'chat' is not one of compare.datasets (mail); write "
            "'compare.speech_datasets: []'"),
        ("audit.shadowed", ["chat/orcale-1"], "is not audited (did you mean 'chat/oracle-1'?); audited"),
        ("audit.shadow_models", 3, ": 3 is too few: two with each line and two without"),
        ("corpora.chat.source", "https://x.org/a", ": a source is a path without a colon, not 'https://x.org/a'"),
        ("compare.fills.0.filler", "minlm",
            ": 'minlm' is no key of 'fillers' or 'tuned_fillers' that fits (did you mean"),
        ("compare.fills.0", {**MINILM, "methods": ["unigram"]}, ".methods: 'unigram' is no key of 'filling' that fits"),
        ("compare.fills.2", {"methods": ["top_k"]}, ".methods: 'top_k' is no key of 'filling' that fits"),
        ("compare.fills.2.audited", ["top_k"], "compare.fills.2: audited: 'top_k' is none of methods (surrogate)"),
        ("compare.speech_techniques", ["crf"], ": none of crf is one of compare.techniques"),
        ("compare.fills.1.techniques", ["presidio"], ": 'presidio' is no key of 'compare.te"),
        ("compare.fills", [MINILM, {**MINILM, "techniques": ["allow_list"]}],
            ": the fill by 'top_k' with 'minilm' of 'allow_list' occurs twice; leave it out once"),
        ("compare.fills", [TUNED, TUNED], "the fill by 'top_1' with 'minilm_tuned' of 'allow_list' occurs twice"),
        (TUNED_BASE, None, ": is missing; name the filler that"),
        (TUNED_BASE, "mpnet", ": 'mpnet' is no key of 'fillers'"),
        (TUNED_BASE, "minilm_tuned_round_2", "goes round in a circle (minilm_tuned -> minilm_tuned_round_2 -> "
            "minilm_tuned); begin with a filler"),
        (TUNED_BASE, "smollm2", "minilm_tuned.kind: 'masked_lm' is not that of its base 'smollm2', 'causal_lm'"),
        ("fillers.minilm_tuned", {"kind": "masked_lm", "model": "x"},
            "a filler 'minilm_tuned' is in 'fillers' already"),
        ("filling.top-k", {"kind": "top_k"}, "'top-k': a name in params.yaml has letters, digits and underscores only"),
        ("language_model.architecture.heads", 3, "width 128 cannot be divided among 3 heads; give a width"),
        ("corpora.chat.cleaning.minimum_words", 90, "minimum_words (90) is above maximum_words (60); lower the one"),
        ("speech.recogniser.training.minimum_words", 20,
            "speech.recogniser.training: minimum_words (20) is above maximum_words (12); lower the one"),
        ("compare.fills", [{"filler": "minilm", "methods": ["free"]}],
            "compare.fills.0.methods: 'free' (method 'free') needs a causal language model, and 'minilm' is a masked "
            "one; take top_1, top_k or sample, or leave one of the two out"),
        ("compare.fills", [{"filler": "smollm2_tuned", "methods": ["counted"]}],
            "needs a masked language model, and 'smollm2_tuned' is a causal one"),
        ("compare.fills", [{"filler": "smollm2", "methods": ["counted"]}],
            "'counted' (prior 'counted') needs a masked language model"),
        # Tables and ratios know the references by these names alone.
        *((f"filling.{name}", {"kind": "unigram"}, f"filling: {name!r} is what tables call one of the models")
          for name in ("no_language_model", "pretrained", "oracle", "baseline1", "dropped")),
        *((f"language_model.{name}", 10**11, ": Input should be less than or equal to ")
          for name in ("architecture.maximum_tokens", "architecture.width", "architecture.layers")),
        *((f"{name}.epochs", 1e308, ": Input should be less than or equal to ") for name in (
            "language_model.pretraining", "language_model.causal_lm.adaptation", "speech.recogniser.training")),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_with_its_key_path(path, value, says, document, tmp_path):
    """``says`` follows the key path where it begins with a dot or a colon."""
    if path.startswith("tuned_fillers"):
        document["compare"]["fills"].append(TUNED)
    document["filling"] |= OWN
    put(document, path, value)
    assert (f"{path}{says}" if says[0] in ".:" else says) in problems_of(document, tmp_path)


def test_dp_sgd_is_for_a_transformer_alone(document, tmp_path):
    document["compare"]["private"] = {"dp_sgd_8": {"epsilon": 8.0}}
    document["language_model"]["kind"] = "ngram"
    said = "compare.private: DP-SGD is for language_model.kind 'transformer', and it is 'ngram'"
    assert said in problems_of(document, tmp_path)
    document["compare"] |= {"baselines": [], "fills": []}
    assert "compare: baselines and fills are both empty" in problems_of(document, tmp_path)


def test_ways_to_forget_fit_the_experiment(document, tmp_path):
    document["compare"]["unlearned"] = ["ours", "theirs"]
    document["unlearning"] = {"methods": {"ours": {"kind": "steering"}}, "technique": "crf", "fill": "top_k"}
    document["language_model"]["kind"] = "ngram"
    text = problems_of(document, tmp_path)
    assert "compare.unlearned: 'theirs' is no key of 'unlearning.methods' that fits" in text
    assert "unlearning.technique: 'crf' is no key of 'compare.techniques' that fits" in text
    assert "unlearning.fill: 'top_k' is no key of 'filling' that fits" in text
    assert "compare.unlearned: language_model.kind 'ngram' has no weights to train" in text


def test_a_conclusion_is_tested_on_a_labelled_corpus(document, tmp_path):
    document["compare"]["conclusions"] = {"chat": {"languages": ["en", "es"]}}
    text = problems_of(document, tmp_path)
    assert "compare.conclusions: 'chat' is no key of 'corpora' with label_field of 'datasets' that fits" in text
    assert "conclusion: is missing, and compare.conclusions has some to be tested" in text
    document["compare"]["conclusions"] = {"chat": {"languages": ["en"]}}
    assert "compare.conclusions.chat.languages" in problems_of(document, tmp_path)


def test_the_audit_has_a_section_where_something_is_audited(document, tmp_path):
    del document["audit"], document["fluency"]
    assert "fluency: is missing, and compare.fills has fills to be read" in problems_of(document, tmp_path)
    document["fluency"] = {}
    assert "audit: is missing, and compare.fills has something that is audited" in problems_of(document, tmp_path)
    for fills in document["compare"]["fills"]:
        fills.pop("audited", None)
    assert read(document, tmp_path).audit.canaries == 40


def test_a_full_audit_is_a_setting_beside_which_each_size_is_said(document, tmp_path):
    document["audit"] |= {"effort": "full", "places": 300}
    found = read(document, tmp_path).audit
    assert (found.sampled, found.shadow_models, found.places, found.canaries) == (20_000, 16, 300, 40)
    assert AuditSettings().shadow_models == AuditSettings().neighboured == 0


SEEDS = (
    "compare.seeds.0 corpora.chat.cleaning.seed taggers.crf.seed fillers.minilm.train_head.seed "
    "language_model.adaptation.seed speech.text.of.1.seed speech.nbest.chat.dev.seed"
).split()


@pytest.mark.parametrize(("seed", "says"), [(-1, "than or equal to 0"), (2**63, "less than"), (2**70, "less than")])
def test_seeds_that_no_generator_takes_are_refused_wherever_they_stand(seed, says, document, tmp_path):
    lists = {"source": "lists.jsonl"}
    document["speech"]["nbest"] = {"chat": {"dev": dict(lists), "test": dict(lists)}}
    for path in SEEDS:
        put(document, path, seed)
    text = problems_of(document, tmp_path)
    assert f": {len(SEEDS)} problems: " in text
    for path in SEEDS:
        assert f"{path}: Input should be " in text
    assert text.count(f"(got {seed})") == text.count(says) == len(SEEDS)


def test_numbers_are_finite_wherever_they_stand(document, tmp_path):
    paths = {
        "language_model.adaptation.epochs": float("inf"),
        "language_model.pretraining.learning_rate": float("inf"),
        "filling.sample.temperature": float("nan"),
        "filling.log_linear.weights": {"filler": float("nan")},
        "resources.time_limits": {"pretrain": float("inf")},
        "speech.recogniser.training.epochs": float("inf"),
    }
    for path, value in paths.items():
        put(document, path, value)
    text = problems_of(document, tmp_path)
    assert f": {len(paths)} problems: " in text
    assert text.count("Input should be a finite number") == len(paths)
    assert "filling.log_linear.weights.filler: Input should be a finite number (got nan)" in text


OWN = {"free": {"kind": "free"}, "counted": {"kind": "log_linear", "prior": "counted"}}


def test_methods_that_a_filler_runs_are_accepted(document, tmp_path):
    document["filling"] |= OWN
    document["compare"]["fills"] = [
        {"filler": "minilm", "methods": ["counted", "log_linear"]},
        {"filler": "smollm2", "methods": ["free", "top_1", "sample"]},
        {"filler": "smollm2_tuned", "methods": ["top_k"]},
    ]
    assert read(document, tmp_path).pretrained_fillers() == ["minilm", "smollm2"]


def test_sections_are_checked_as_part_of_the_whole_file(document, tmp_path):
    document["evaluation"]["confidence"] = 2.0
    assert "evaluation.confidence" in problems_of(document, tmp_path)
    with pytest.raises(ParameterError, match=r"evaluation\.confidence"):
        read_sections(tmp_path / "params.yaml", ["filling.top_k"])


def test_an_unknown_section_has_its_nearest_spelling():
    with pytest.raises(ParameterError, match=r"no section 'filling\.topk'.*did you mean 'top_k'"):
        read_sections(ROOT / "params.yaml", ["filling.topk"])
