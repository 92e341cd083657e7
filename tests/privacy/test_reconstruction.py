"""Nobody rebuilds private lines from what may leave: all that is pushed, tracked, or taken by git, and one release.

Three techniques mask the same text, so their fills together hold nearly all of it. What may leave is gathered by the
tools that send it, and every file of it is unpacked; so no list of what is private has a part in this.
"""

import random
import shutil
from pathlib import Path

import pytest
import small_experiment as tiny
import yaml
from canary_search import readable
from reconstruction import decided, rebuilt_lines
from unpacking import pieces, unpacked

RAW = ["Yesterday Marigold paid the plumber", "They meet Thaddeus in Oxbridge again", "Nobody was at the house"]
BY_LIST = [
    ["Yesterday kettle paid the violet", "They meet meadow in harbour again", "Nobody was at the house"],
    ["Yesterday garden paid the window", "They meet bread in kitchen again", "Nobody was at the house"],
]
BY_TAGGER = [
    ["Yesterday Susan paid the plumber", "They meet Peter in Leeds again", "Nobody was at the house"],
    ["Yesterday Robert paid the plumber", "They meet Maria in Bath again", "Nobody was at the house"],
]
BY_THRESHOLD = [
    ["Yesterday Marigold paid the doctor", "They meet Thaddeus in London again", "Nobody was at the house"],
    ["Yesterday Marigold paid the brother", "They meet Thaddeus in Vienna again", "Nobody was at the house"],
]


EVERY = (*BY_LIST, *BY_TAGGER, *BY_THRESHOLD)
OF_OTHER_LENGTHS = (["A line", "The next one"], ["Just this"])


@pytest.mark.parametrize(
    ("fills", "rebuilt"),
    [
        # 'Marigold' from the threshold's, 'plumber' from the tagger's; nobody keeps 'Oxbridge'.
        (EVERY, {RAW[0], RAW[2]}),
        ((*EVERY, *OF_OTHER_LENGTHS), {RAW[0], RAW[2]}),
        # Those of one technique give back what it keeps and no more.
        *((fills, {RAW[2]}) for fills in (BY_LIST, BY_TAGGER, BY_THRESHOLD)),
        *((fills[:1], set()) for fills in (BY_LIST, BY_TAGGER, BY_THRESHOLD)),
    ],
)
def test_fills_of_techniques_that_mask_different_words_give_the_line_back(fills, rebuilt):
    assert rebuilt_lines("\n".join(lines) + "\n" for lines in fills) == rebuilt


@pytest.mark.parametrize(
    ("versions", "line"),
    [
        (["a b c", "a b d", "a e c"], "a b c"),
        (["a b", "a c"], None),
        (["a b", "a b", "a c", "a c"], None),
        (["a b c", "a b c", "a d"], "a b c"),
        (["a b c"], None),
    ],
)
def test_a_word_is_decided_by_vote(versions, line):
    assert decided(versions) == line


# The whole experiment ---------------------------------------------------------------------------------------
TECHNIQUES = {
    "allow_list": {"kind": "allow_list"},
    "vocabulary_threshold": {"kind": "vocabulary_threshold", "allowed_words": 60, "vocabulary_size": 500},
    "entity_tagger": {"kind": "entity_tagger", "tagger": {"kind": "crf"}},
}
COMPARED = {
    "techniques": list(TECHNIQUES),
    "fills": [{"filler": "tiny", "methods": ["top_k"]}, {"methods": ["unigram", "surrogate"]}],
    **{name: [] for name in ("baselines", "speech_datasets", "recognisers", "taggers", "detectors", "gold_sets")},
}
RELEASED = Path("data/obfuscated/mail/entity_tagger/unigram-1.txt")
THINGS = "violin kettle lantern saucepan bicycle umbrella haystack thimble blanket carpet".split()
RARE_NAMES = "Susan Robert Harriet Edmund Rosalind Cuthbert Barnaby Leopold Winifred Agatha Clement Dorothy".split()
"""What is drawn where the vocabulary threshold masks."""


def write_lines(raw: Path) -> None:
    """Names, which the threshold keeps, beside things, which the tagger keeps; no line of it is in generic text."""
    generator = random.Random(3)
    parts = (tiny.TIMES, tiny.NAMES, THINGS, tiny.NAMES)
    lines = ["{} {} called the manager about a {} with {}.".format(*map(generator.choice, parts)) for _ in range(300)]
    (raw / "mail.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (raw / "generic.txt").open("a", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in tiny.sentences(60, RARE_NAMES, seed=4))


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Path:
    """The experiment after a run, beside a folder that everything that may leave was sent to."""
    place = tmp_path_factory.mktemp("compared")
    folder = tiny.make_checkout(place / "experiment")
    write_lines(folder / "data" / "raw")
    parameters = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    parameters["compare"] |= COMPARED
    parameters["masking"] = TECHNIQUES
    parameters["masking_evaluation"]["gold_sets"] = {}
    parameters["tuned_fillers"] = parameters["speech"]["corpora"] = {}
    parameters["filling"]["surrogate"] = {"kind": "surrogate"}
    parameters["language_model"] |= {"kind": "ngram", "ngram": {"order": 2, "generic_weight": None}}
    (folder / "params.yaml").write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")
    tiny.run(folder, "palimpsest", "run")
    release = folder / "releases" / "one"
    release.mkdir(parents=True)
    shutil.copy(folder / RELEASED, release / "train.txt")
    tiny.run(folder, "dvc", "add", "releases/one")
    tiny.run(folder, "dvc", "remote", "add", "--default", "shared", str(place / "leaves" / "remote"))
    tiny.run(folder, "dvc", "push")
    tiny.run(folder, "dvc", "push", "--run-cache")
    tiny.run(folder, "git", "add", "-A")
    for name in (".git", "mlflow.db", "mlruns", "releases", "results/report.html", "results/summary.json"):
        source, target = folder / name, place / "leaves" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.exists():
            shutil.copy(source, target)
    return folder


def lines_of(path: Path) -> set[str]:
    return set(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_no_line_comes_back_beyond_those_that_the_one_release_shows(compared):
    private = lines_of(compared / "data" / "private" / "corpora" / "mail" / "train.txt")
    assert len(private) > 200
    hidden = private - lines_of(compared / RELEASED)
    found = [part for _, content in pieces(compared.parent / "leaves") for part in unpacked(content)]
    assert len(found) > 300
    rebuilt = rebuilt_lines(part.decode("utf-8", "replace") for part in found) & hidden
    text = "\n".join(map(readable, found))
    quoted = [line for line in hidden if readable(line.encode()) in text]
    # Numbers alone: a failing test prints no private line.
    assert (len(rebuilt), len(quoted), len(hidden)) == (0, 0, len(hidden))
    # The attack works on the experiment itself, or its failure outside would say nothing.
    fills = [path.read_text(encoding="utf-8") for path in (compared / "data" / "obfuscated").rglob("*.txt")]
    assert len(fills) == 9
    assert len(rebuilt_lines(fills) & hidden) > 0.5 * len(hidden)
