"""Text that mixes languages: factors that predict the language first, positions that turn with it, state fusion."""

import numpy as np
import pytest
import torch
from pretrained_folder import SMALL, write
from stage_commands import make_vocabulary, settings
from test_scores_agree import check_agreement

from tasks.cli import main
from tasks.language_model.language_factors import LanguageFactors
from tasks.language_model.opening import open_language_model
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel, load_model
from tasks.language_model.transformer.scoring import WordTransformer
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID, Vocabulary

ENGLISH = ["the house was very big", "my sister went to school", "we want water and bread", "the school was open"]
SPANISH = ["mi hermana quiere agua", "la casa era muy grande", "queremos agua y pan", "la escuela estaba abierta"]
MIXED = ["my sister went to la escuela", "la casa era very big", "we want agua y pan", "queremos water and bread"]
VALID = ["my sister was very big", "la hermana quiere pan", "mi casa era open", "la 7 casa era xyz"]
CODES = "languages.codes=[en, es]"
FACTORED = {"plain": [], "factored": [CODES], "weight0": [CODES, "languages.weight=0"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Texts, a vocabulary, and models of either kind with factors, without and by the weight 0; one more is fused."""
    folder = tmp_path_factory.mktemp("mixed")
    text, valid = (
        write(folder / "text.txt", (ENGLISH * 3 + SPANISH * 3 + MIXED) * 2),
        write(folder / "valid.txt", VALID),
    )
    make_vocabulary(text, folder / "vocabulary.txt", "size=100")
    models = {
        f"{kind} {name}": [f"kind={kind}", *(f"{kind}.{setting}" for setting in more)]
        for kind in ("ngram", "transformer")
        for name, more in FACTORED.items()
    }
    models["learned"] = ["architecture.positions=learned", "architecture.languages=[en, es]"]
    for name, own in models.items():
        small = [] if name.startswith("ngram") else [*SMALL, *settings("pretraining.epochs=2")]
        command = ["pretrain", "--input", text, "--valid", valid, "--vocabulary", str(folder / "vocabulary.txt")]
        assert main([*command, *small, *settings(*own), "--output", str(folder / name)]) == 0
    return folder


def adapt(folder, model, *values):
    command = ["adapt", "--model", str(folder / model), "--input", str(folder / "text.txt")]
    return main([*command, "--output", str(folder / "adapted"), *settings(*values)])


@pytest.mark.parametrize("kind", ["ngram", "transformer"])
def test_a_weight_of_0_is_the_plain_model_byte_for_byte(folder, kind):
    for plain in (folder / f"{kind} plain").iterdir():
        assert (folder / f"{kind} weight0" / plain.name).read_bytes() == plain.read_bytes()


@pytest.mark.parametrize(
    "model", ["ngram factored", "transformer factored", "learned", "rotary", "switching", "switching_pairs"]
)
def test_text_sentences_and_next_words_agree(folder, model):
    """So later words change no earlier probability, in whichever language the line goes on. One line changes its
    language, and one has a number and an unknown word."""
    if (folder / model).exists():
        opened, lines = open_language_model(folder / model), VALID
    else:
        opened, lines = WordTransformer(*model_of(model)), ["a b c t u v d e", "t a b u c", "z y a", "b"]
    check_agreement(opened, [[tuple(line.split()) for line in lines]])


def test_training_learns_from_languages_and_leaves_their_statistics(folder):
    assert adapt(folder, "learned") == 0
    before, after = (load_model(folder / name)[0].state_dict() for name in ("learned", "adapted"))
    same = {name: torch.equal(weights, after[name]) for name, weights in before.items()}
    assert (same["embedding.weight"], same["state.weight"], same["state.shares"]) == (False, False, True)


def model_of(kind):
    """A model of 14 words, of which the second half is of another language, and its vocabulary."""
    languages = ["en", "es"] if kind != "rotary" else []
    sizes, words = {"layers": 2, "heads": 2, "width": 16, "maximum_tokens": 12}, "abcdefgtuvwxyz"
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *words))
    architecture = ArchitectureSettings(**sizes, positions=kind, languages=languages)
    model = TransformerLanguageModel(architecture, len(vocabulary))
    model.initialise(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(5))
    if languages:
        shares = np.zeros((len(vocabulary), 2))
        shares[-14:-7, 0] = shares[-7:, 1] = 1
        steps = np.tile([[0.9, 0.1], [0.1, 0.9]], (len(vocabulary), 1, 1))
        model.know(LanguageFactors(("en", "es"), shares, steps, np.array([0.5, 0.5])))
    return model.eval(), vocabulary


def test_places_by_hand():
    """Two stretches and a word without a language, which belongs to the stretch that it is in."""
    (switching, vocabulary), (pairs, _) = model_of("switching"), model_of("switching_pairs")
    switching, pairs = switching.positions, pairs.positions
    line = torch.tensor([[START_ID, *vocabulary.encode("a b t unknown u c".split()), END_ID]])
    assert switching.follow(line)[0][0, 1:].argmax(dim=1).tolist() == [0, 0, 1, 1, 1, 0, 0]
    assert switching.places(line).tolist() == [[0, 1, 2, -3, -4, -5, 6, 7]]
    with torch.no_grad():
        pairs.pairs.copy_(torch.tensor([1.0, 3.0, 0.5, 2.0]))  # en-en, en-es, es-en, es-es
    assert pairs.places(line).tolist() == [[0, 1, 2, 5, 7, 9, 9.5, 10.5]]


def test_an_epsilon_that_would_not_hold_is_refused(folder, capsys):
    for model, values, said in (
        ("transformer plain", [f"transformer.{CODES}"], "epsilon does not cover"),
        ("learned", [], "clipped line by line only with 'learned' positions"),
    ):
        assert adapt(folder, model, *values, "adaptation.private.epsilon=8") == 1
        assert said in capsys.readouterr().err
