"""Language models that learn by heart what they see: n-gram models, which are trained in a second."""

from tasks.cli import main


def run(*words):
    assert main([str(word) for word in words]) == 0


def pretrained(folder, text):
    """``generic_model`` of a text in the folder, with its ``counts.tsv`` and ``vocabulary.txt``."""
    given, counts, vocabulary = ["--input", folder / text], folder / "counts.tsv", folder / "vocabulary.txt"
    run("count-words", *given, "--output", counts)
    run("vocabulary", "--word-counts", counts, "--output", vocabulary)
    run("pretrain", *given, "--vocabulary", vocabulary, "--set", "kind=ngram", "--output", folder / "generic_model")
    return str(folder / "generic_model")


def adapted(folder, name, lines):
    """The generic model adapted to lines, half of its weight on them."""
    (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    given = ["--model", folder / "generic_model", "--input", folder / f"{name}.txt"]
    run("adapt", *given, "--output", folder / name, "--set", "ngram.generic_weight=0.5")
    return str(folder / name)
