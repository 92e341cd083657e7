"""What users hand in, a row for each case: name, command, the file ``x`` (or files), exit status, and what is said.

A command runs in a folder with the files of ``HANDED_OUT`` and the file ``x``; whatever it writes begins with ``o``.
"""

import gzip
import json
from pathlib import Path
from typing import NamedTuple

Files = bytes | str | dict[str, bytes | str | None] | None
"""Content of ``x``, or of several files by path; ``None`` deletes one that is handed out."""


class Case(NamedTuple):
    name: str
    command: str
    says: str = ""
    """A part of the standard error of a refusal, of either stream of what is accepted."""
    x: Files = None
    status: int = 1


MASK = "mask --technique allow_list --output o.txt --input "
FILL = "fill --method unigram --word-counts counts.tsv --output o.txt --input "
FILLED = "fill --filler filler --output o.txt --input masked.txt --method "
OF_MAIL, OF_MASKED = " --input mail.txt --output o.txt", " --input masked.txt --output o.txt"
TO = "mask --technique allow_list --input mail.txt --output "
FILL_TO = "fill --method surrogate --input masked.txt --output "
UNIGRAM = "fill --method unigram --output o.txt --input masked.txt "
SURROGATE = "fill --method surrogate --output o.txt --input "
PERPLEXITY = "perplexity --model model --scores o.tsv --set bootstrap_samples=100 --input "
ADAPT = "adapt --model model --valid generic.txt --output o --input "
PREVIEW = "preview --technique allow_list --html o.html --input "
COUNT = "count-words --output o.tsv --input "
PRETRAIN = "pretrain --set kind=ngram --vocabulary vocabulary.txt --output o --input "
JUDGE = "evaluate-masking --technique allow_list --errors o.txt --gold "
RESCORE = "rescore --model model --dev dev.jsonl --output o.jsonl --nbest "
TRAIN = "train-tagger --set kind=crf --set embeddings=null --set iterations=2 --output o --labelled "
GENERATE = "generate-labelled --output o "
PARAMS = "cells"
READERS = {
    "mask": MASK, "fill": FILL, "perplexity": PERPLEXITY, "adapt": ADAPT, "preview": PREVIEW, "count-words": COUNT,
    "pretrain": PRETRAIN,
}  # fmt: skip

# Texts -----------------------------------------------------------------------------------------------------------
BAD_TEXTS: dict[str, tuple[Files, str]] = {
    "that is empty": (b"", "it needs at least one sentence"),
    "of blank lines": (b"\n \n\t\n", "it needs at least one sentence"),
    "in latin-1": (b"fine\nZebulon \xe9t\xe9\n", "x: line 2: byte 9 (0xe9) is not UTF-8"),
    "that begins as UTF-16": (b"\xff\xfeZebulon", "it is not UTF-16 after line 0"),
    "with half a surrogate pair": (b"fine\n\xed\xa0\x80 Zebulon\n", "x: line 2: byte 1 (0xed) is not UTF-8"),
    "cut inside a character": (b"Zebulon \xe2\x82", "x: line 1: byte 9 (0xe2) is not UTF-8"),
    "that is binary": (bytes(range(1, 256)), "is not UTF-8"),
    "that is compressed": (gzip.compress(b"Zebulon\n"), "is an archive or compressed, and one sentence"),
    "that is not there": (None, "'x' does not exist"),
    "that is a folder": ({"x/y": "Zebulon\n"}, "'x' is a folder"),
}
CASES = [
    Case(f"a text {kind}", command + "x", says, x=x)
    for kind, (x, says) in BAD_TEXTS.items()
    for name, command in READERS.items()
]
ODD_TEXTS = {
    "NUL": "Zebulon \x00 [MASK] here\n",
    "other line separators": "Zebulon\u2028[MASK]\x85and\x0bon\x0cand\x1con\n",
    "a byte order mark": "\ufeffZebulon [MASK]\n",
    "Windows line ends": "Zebulon [MASK]\r\n\r\nthe end\r\n",
    "no last line end": "Zebulon\n[MASK] on the mat",
    "control characters": "\x1b[31mZebulon\x07 [MASK]\x7f\n",
    "right to left": "שלום עולם [MASK]\n\u202eZebulon [MASK]\u202c\n",
    "emoji": "😀😀 Zebulon 👩‍👩‍👧 🇩🇪 [MASK]❤️\n",
    "markers and escapes": "[MASK] [\\MASK] [[MASK]] [PERSON]x Zebulon [\\\\PERSON]\n",
    "combining marks": "e\u0301 ﬁ Ⅷ ß İ ǅ 𝒵ℴ𝓁𝓉𝒶𝓃 [MASK]\n",
    "a line of ten thousand words": "Zebulon [MASK], " * 5_000 + "\n",
    "a word of a million characters": "z" * 1_000_000 + " [MASK]\n",
    "twenty thousand empty lines": "[MASK]\n" + "\n" * 20_000,
    "punctuation alone": "... !!! ((([MASK]\n",
}
CASES += [
    Case(f"a text with {kind}", command + "x", x=text, status=0)
    for kind, text in ODD_TEXTS.items()
    for name, command in (("mask", MASK), ("fill", FILL), ("count-words", COUNT))
]
CASES += [
    Case("lone carriage returns", MASK + "x", "carriage return", x="Zebulon\rthe\rend\r", status=0),
    Case("lone carriage returns", PREVIEW + "x", "2 carriage returns", x="Zebulon\rthe\rend\r", status=0),
    Case("text of another script", MASK + "x", "DEVANAGARI", x="मैं दिल्ली में रहता हूँ\n" * 9, status=0),
    Case("text of another language", MASK + "x", "100% de", x="Ich wohne in Stuttgart und arbeite dort.\n" * 9,
        status=0),
    Case("direction marks stay", TO.replace("mail.txt", "x") + "-", "\u202e[MASK]\u202c the",
        x="\u202eZebulon\u202c the\n", status=0),
    Case("most words masked", MASK + "x", "75.0% of the words are masked", x="Zebulon Quux Ottilie the\n" * 3,
        status=0),
    Case("text of another language", "mask --technique spacy --output o.txt --input x", "100% de",
        x="Ich wohne in Stuttgart und arbeite dort.\n" * 9, status=0),
    Case("most words unknown", PERPLEXITY + "x", "over known words none", x="Zebulon Quux\n", status=0),
    Case("unknown words are warned of", PERPLEXITY + "x", "50.0% of the words are unknown",
        x="the Zebulon\n", status=0),
    Case("usual text", PERPLEXITY + "generic.txt", "perplexity", status=0),
    Case("usual text", ADAPT + "generic.txt", status=0),
    Case("markers as tokens", ADAPT + "masked.txt --markers token", status=0),
    Case("usual text", PREVIEW + "mail.txt", "mode 0600", status=0),
    Case("raw text", FILL + "mail.txt", "has no marker such as [MASK]"),
    Case("raw text from standard input", FILL + "-", "has no marker such as [MASK]", x="Zebulon Quux\n"),
    Case("standard input", MASK + "-", x="Zebulon\nthe end\n", status=0),
    Case("nothing on standard input", MASK + "-", "standard input is empty", x=""),
    Case("latin-1 on standard input", MASK + "-", "standard input: line 2: byte 1 (0xe9)", x=b"Zebulon\n\xe9\n"),
    Case("standard input", PERPLEXITY + "-", "--input '-' is a stream", x="the cat\n"),
    Case("as many lines as asked", PREVIEW + "x --lines 1", "in 1 lines", x=b"Zebulon\n\xff\n", status=0),
]  # fmt: skip

# Paths -----------------------------------------------------------------------------------------------------------
CASES += [
    Case("the output is the input", TO + "mail.txt", "is --input 'mail.txt', which is read"),
    Case("the output is the input", FILL_TO + "./masked.txt", "which is read"),
    Case("the output is another name of the input", TO + "link.txt", "which is read"),
    Case("the output is its sidecar",
        "fill --method surrogate --input masked.txt --sidecar sidecar.jsonl --output sidecar.jsonl", "which is read"),
    Case("the report is an output", MASK + "mail.txt --report o.txt", "are the same"),
    Case("the output is the model", "adapt --model model --input generic.txt --output model", "which is read"),
    Case("the output holds the model", "adapt --model model --input generic.txt --output .", "replaced as a whole"),
    Case("the output is a folder", TO + "folder", "'folder': it is a folder"),
    Case("the output lies below a file", TO + "mail.txt/o", "--output 'mail.txt/o' cannot be written"),
    Case("a folder of the output is made", TO + "o/p/q.txt", status=0),
    Case("a report that is a folder", PERPLEXITY + "generic.txt --report folder", "'folder': it is a folder"),
    Case("a report below a file", MASK + "mail.txt --report mail.txt/r.json", "--report 'mail.txt/r.json'"),
    Case("the report is the input", TO + "o.txt --report mail.txt", "--report 'mail.txt' is --input"),
    Case("the output is a list of the settings", TO + "kept.txt --set path=kept.txt", "is setting 'kept.txt'"),
    Case("two outputs are one", "perplexity --model m --input i --scores o --report o",
        "--scores 'o' and --report 'o'"),
    Case("text and numbers in one stream", TO + "- --report -", "would both go to standard output"),
    Case("the text lies in the output", "adapt --model filler --input model/vocabulary.txt --output model",
        "is in --output 'model'"),
    Case("the source is an output", "corpora --set source=x/train.txt --output x",
        "is 'train.txt' of --output 'x', which is written", x={"x/train.txt": "Zebulon\n"}),
    Case("the report is an output", "corpora --set source=mail.txt --output o --report o/valid.txt",
        "is 'valid.txt' of --output 'o'"),
    Case("no source", "corpora --set source=nope --output o", "'nope' does not exist"),
    Case("JSON lines with a key twice", "corpora --set source=x.jsonl --output o",
        "line 1 has the key 'text' twice", x={"x.jsonl": '{"text": "a", "text": "Zebulon"}\n'}),
    Case("JSON lines without text", "corpora --set source=x.jsonl --output o",
        "line 1 has no text field 'text'; name it with text_field", x={"x.jsonl": '{"body": "Zebulon"}\n'}),
    Case("standard output", "vocabulary --word-counts counts.tsv --output -", "--output '-' is a stream"),
    Case("a report on standard output", MASK + "mail.txt --report -", '"measured": {', status=0),
    Case("word counts on standard input", UNIGRAM + "--word-counts -", "--word-counts '-' is a stream"),
    Case("an empty path", MASK + "''", "--input"),
    Case("a path with a NUL", MASK + "'a\0b'", "--input"),
    Case("a name of 300 letters", MASK + "a" * 300, "is no path"),
]  # fmt: skip

# Word lists, kept words, word counts -----------------------------------------------------------------------------
CASES += [
    Case("a list that is not there", MASK + "mail.txt --set path=nolist", "word list 'nolist' does not exist"),
    Case("an empty list", MASK + "mail.txt --set path=x", "is empty; it needs one word a line", x="\n\n"),
    Case("a list in latin-1", MASK + "mail.txt --set path=x", "x: line 2: byte 8", x=b"the\nZebulon\xe9\n"),
    Case("a list of sentences", MASK + "mail.txt --set path=x", "no word list",
        x="the cat sat on the mat\na dog and a cat sat\n"),
    Case("word counts as a list", MASK + "mail.txt --set path=counts.tsv", "no word list"),
    Case("a list with capitals and blanks", MASK + "mail.txt --set path=x", x="\ufeffThe\r\n\r\n CAT \r\n", status=0),
    Case("too few words", MASK.replace("allow_list", "vocabulary_threshold") + "mail.txt --set path=x",
        "is more than the 2 words", x="a\nb\n"),
    Case("kept words that are not there", FILL + "masked.txt --allowed-words no.txt",
        "word list 'no.txt' does not exist"),
    Case("word counts as kept words", FILL + "masked.txt --allowed-words counts.tsv", "'counts.tsv' is no word list"),
    Case("sentences as kept words", FILL + "masked.txt --allowed-words generic.txt", "'generic.txt' is no word list"),
    Case("a folder as kept words", FILL + "masked.txt --allowed-words folder", "'folder' is a folder"),
    Case("kept words in latin-1", FILL + "masked.txt --allowed-words x", "x: line 2: byte 1", x=b"the\n\xe9\n"),
    Case("an empty list of kept words", FILL + "masked.txt --allowed-words x",
        "no list of never-masked words, so any word may be written", x="", status=0),
    Case("kept words", FILL + "masked.txt --allowed-words kept.txt", "against the off-list rule", status=0),
    *(
        Case(f"word counts {kind}", command, says, x=content)
        for name, command in (
            ("mask", "mask --technique vocabulary_threshold --set allowed_words=1 --word-counts x" + OF_MAIL),
            ("fill", UNIGRAM + "--word-counts x"),
        )
        for kind, content, says in (
            ("that are a list", "the\ncat\n", "line 1 is not 'word<TAB>count'"),
            ("that are empty", "", "'x'"),
            ("with a count of 400 digits", "the\t" + "9" * 400 + "\n",
                "line 1 is not 'word<TAB>count' with a count of at most 18 digits"),
            ("with a negative count", "the\t-3\n", "line 1 is not 'word<TAB>count'"),
            ("with a fraction", "the\t3\ncat\t1.5\n", "line 2 is not 'word<TAB>count'"),
            ("with Arabic digits", "the\t٣\n", "line 1 is not 'word<TAB>count'"),
            ("that are not there", {}, "file of word counts 'x' does not exist"),
        )
    ),
    Case("word counts of 400 digits", PERPLEXITY + "generic.txt --word-counts x", "line 1 is not",
        x="the\t" + "9" * 400 + "\n"),
    Case("word counts that are all 0", UNIGRAM + "--word-counts x", "hold no word", x="the\t0\ncat\t0\n"),
]  # fmt: skip

# Sidecars --------------------------------------------------------------------------------------------------------
_SPAN = {"start": 0, "end": 7, "label": "MASK", "source": "allow_list", "original": "Zebulon", "marker": 0}


def _sidecar(**changes: object) -> str:
    lines = [{"line": number, "spans": []} for number in range(1, 5)]
    lines[0] = {"line": 1, "spans": [{**_SPAN, **changes}]}
    return "".join(json.dumps(line) + "\n" for line in lines)


CASES += [
    Case("a sidecar", SURROGATE + "masked.txt --sidecar sidecar.jsonl --word-counts counts.tsv", status=0),
    Case("a sidecar that is not there", FILL + "masked.txt --sidecar nope", "sidecar 'nope' does not exist"),
    *(
        Case(f"fill: a sidecar {kind}", FILL + "masked.txt --sidecar x", says, x=content)
        for kind, content, says in (
            ("that is empty", "", "ends before line 1"),
            ("that is cut", _sidecar()[:60], "line 1 is not a sidecar record"),
            ("of fewer lines", '{"line": 1, "spans": []}\n', "sidecar"),
            ("of more lines", _sidecar() * 1 + '{"line": 5, "spans": []}\n', "sidecar"),
            ("of another text", _sidecar(), "the sidecar has 1 markers"),
            ("that is a text", "Zebulon Quux\n", "line 1 is not a sidecar record"),
            ("in another order", '{"line": 2, "spans": []}\n', "line 1 is not a sidecar record of line 1"),
            ("with an unknown key", _sidecar(more=1), "line 1 is not a sidecar record"),
            ("of nested lists", "[" * 100_000, "line 1 is not a sidecar record"),
        )
    ),
    Case("a sidecar of another text", PERPLEXITY + "generic.txt --sidecar sidecar.jsonl", "sidecar"),
    Case("a sidecar", PERPLEXITY + "mail.txt --sidecar sidecar.jsonl", "masked words", status=0),
    Case("a folder without sidecars", PERPLEXITY + "mail.txt --sidecar folder", "holds no sidecar"),
]  # fmt: skip

# Options and numbers ---------------------------------------------------------------------------------------------
CASES += [
    Case("an unknown command", "maks", "did you mean 'mask'?"),
    Case("no options", "mask", "required: --input, --output, --technique", status=2),
    Case("an unknown option", MASK + "mail.txt --techniqe x", "unrecognized arguments: --techniqe x", status=2),
    Case("an option without a value", "mask --input", "expected one argument", status=2),
    Case("an unknown technique", MASK.replace("allow_list", "alow_list") + "mail.txt", "did you mean 'allow_list'?"),
    Case("an unknown method", FILLED + "top_2", "did you mean 'top_k'?"),
    Case("a setting without a value", MASK + "mail.txt --set path", "is not of the form KEY=VALUE"),
    Case("a setting twice", MASK + "mail.txt --set 'path=[}'", "is not YAML"),
    Case("a setting of another tagger", "mask --technique spacy --set tagger.minimum_score=0.5" + OF_MAIL,
        "unknown key; allowed: batch_size, kind, model"),
    Case("a setting of another method", FILL + "masked.txt --set k=5", "k: unknown key"),
    Case("a filler that is not used", FILL + "masked.txt --filler filler", "uses no filler"),
    Case("a combination of an unknown technique",
        "mask --technique combination --set rule=union --set 'parts=[{kind: allow_lst}]'" + OF_MAIL,
        "did you mean 'allow_list'?"),
    Case("a tagger without its model", "mask --technique transformers" + OF_MAIL, "tagger.model: is missing"),
    Case("parameters that are not there", "mask --technique x --params nope" + OF_MAIL, "'nope' does not exist"),
    Case("no epochs", ADAPT + "generic.txt --set kind=transformer --set adaptation.epochs=0", "(got 0)"),
    Case("classes that fall", PERPLEXITY + "generic.txt --set 'frequency_classes=[100, 10]'", "rising ranks"),
    Case("a name without parameters", TRAIN + "folder --name own", "is a name in a parameter file"),
    Case("a setting of another kind", TRAIN + "folder --set epochs=3", "epochs: unknown key"),
    Case("a class that is none",
        JUDGE + "gold.jsonl --gold-set a --set 'evaluation.gold_sets={a: {source: gold.jsonl, labels: {x: NOBODY}}}'",
        "'NOBODY' is no class"),
    Case("a gold set of no name", JUDGE + "gold.jsonl --gold-set x", "--gold-set 'x' is no key"),
    Case("no source", "check-nbest --output o.jsonl", "source: is missing"),
    Case("a combination without parts", "mask --technique combination --set rule=union" + OF_MAIL, "parts: is missing"),
    *(
        Case(f"{name} {value}", f"{command} --set {key}={value}", says)
        for name, command, key, values, says in (
            ("fill: k", FILLED + "top_k", "k", ("0", "-1", "1.5", "many", "1e999", ".nan", "1000000000"), "k"),
            ("fill: temperature", FILLED + "sample", "temperature", ("0", "-1", ".nan", ".inf", "1.0e-300"),
                "temperature"),
            ("mask: kept words", "mask --technique vocabulary_threshold" + OF_MAIL, "allowed_words",
                ("0", "-5", "1.5", "all"), "allowed_words"),
            ("perplexity: samples", PERPLEXITY + "generic.txt", "bootstrap_samples",
                ("-1", "1000000000000", "many"), "bootstrap_samples"),
            ("perplexity: confidence", PERPLEXITY + "generic.txt", "confidence", ("0", "1", "2", ".nan"), "confidence"),
            ("generate: sentences", GENERATE, "sentences", ("0", "-1", ".inf", "many"), "sentences"),
            ("generate: a share", GENERATE, "valid_share", ("-0.1", "1.1", ".nan"), "valid_share"),
            ("mask: a style", MASK + "mail.txt", "markers.style", ("colour", "1", "null"), "style"),
        )
        for value in values
    ),
    *(
        Case(f"fill: seed {seed}", FILL + f"masked.txt --seed {seed}", says, status=status)
        for seed, status,
            says in (("-1", 1, "seed -1"), ("9" * 30, 1, "seed"), ("1.5", 2, "invalid int value"), ("0", 0, ""),
                ("123456789012", 0, ""))
    ),
    *(
        Case(f"{command.split()[0]}: seed {seed}", f"{command}{seed}", str(seed))
        for seed in (-1, 2**70)
        for command in ("adapt --model x --input x --output o --seed ", PERPLEXITY + "x --set seed=",
            "pretrain --vocabulary x --input x --output o --set pretraining.seed=")
    ),
    Case("no threads", MASK + "mail.txt --threads 0", "--threads 0 is not allowed"),
    Case("devices that are no number", FILL + "masked.txt --set resources.devices=none",
        "Input should be a valid integer"),
    Case("no lines", PREVIEW + "mail.txt --lines 0", "lines: "),
    Case("labels of a cell", MASK + "mail.txt --cell dataset=mail --report o.json", status=0),
    Case("a label that no cell has", MASK + "mail.txt --cell datset=mail", "did you mean 'dataset'?"),
    Case("a label without a value", MASK + "mail.txt --cell dataset", "--cell 'dataset'"),
    Case("a seed that is no number", PERPLEXITY + "generic.txt --cell seed=one", "--cell 'seed=one'"),
]  # fmt: skip

# What methods need, and other settings of single commands -------------------------------------------------
_GENERIC, _SIDECAR = "--generic generic ", "--sidecar sidecar.jsonl "
_COUNTED, _EPSILON = f"{_GENERIC}{_SIDECAR}--set prior=counted ", "epsilon would not hold for the fill"
_COUNTS, _LEARNED = "--word-counts counts.tsv ", "--filler filler --word-counts counts.tsv --generic generic "
CASES += [
    Case(f"fill: {method} {options[:60]}", f"fill{OF_MASKED} --method {method} {options}", says)
    for method, options, says in (
        ("top_1", "--filler filler --set k=3", "k: unknown key"),
        ("top_1", "--filler filler --set counts.epsilon=3", "counts: unknown key"),
        ("top_k", "--filler filler --set k=16", "k=16 is more than the"),
        ("unigram", _COUNTS + "--sidecar folder", "'folder' is a folder"),
        ("unigram", _COUNTS + _GENERIC + "--set prior=counted", "counts the masked words; give --sidecar"),
        ("unigram", _COUNTS + _SIDECAR + "--set prior=counted", "weighs generic text; give --generic,"),
        ("unigram", _COUNTS + "--set counts.epsilon=3", "is for prior 'counted', and prior is 'word_counts'"),
        ("unigram", _COUNTS + _COUNTED + "--set counts.epsilon=0", "counts.epsilon"),
        ("unigram", _COUNTS + _COUNTED + "--set counts.epsilon=1.0e-17", "counts.epsilon"),
        ("unigram", _COUNTS + _COUNTED + f"--set counts.words_per_unit={10**17}", "counts.words_per_unit"),
        ("unigram", _COUNTS + _COUNTED + "--set counts.words_per_unit=201", "to 200, or raise epsilon to 4.02"),
        ("log_linear", _LEARNED + _COUNTED + "--set classes=match", _EPSILON),
        ("log_linear", "--filler filler " + _COUNTS, "give --generic"),
        ("log_linear", f"--filler filler {_COUNTS}--generic nope", "give --generic"),
        ("log_linear", _LEARNED + "--set prior_places=0", "prior_places"),
        ("surrogate", "--set counts.epsilon=3", "counts: unknown key"),
        ("surrogate", "--set consistent_within=conversation", "consistent_within"),
        ("surrogate", "--set consistent_within=document", "needs the document of each line; give --documents"),
    )
]
CASES += [
    Case(f"{command}: {options[:60] or 'no options'}", f"{command} --output o {options}", says)
    for command, options, says in (
        ("train-filler", "", "no model is given"),
        ("train-filler", "--params params.yaml", "needs --name"),
        ("train-filler", "--model filler --set train_head={}", "give --input"),
        ("train-filler", "--model filler --input nope --set train_head.steps=0", "steps"),
        ("train-filler", "--model filler --input nope --set train_head={}", "text file 'nope' does not exist"),
        ("speech-corpus", "", "source: is missing"),
        ("speech-corpus", "--set source=nope", "manifest 'nope' does not exist"),
        ("speech-corpus", "--set kind=librispeech --set source=nope", "source 'nope' does not exist"),
        ("speech-corpus", "--set source=x --set parts=[test-clean]", "parts: unknown key"),
        ("speech-corpus", "--set kind=kaldy --set source=x", "did you mean 'kaldi'"),
        ("speech-corpus", "--set source=x --set maximum_seconds=0", "maximum_seconds"),
        ("corpora", "", "source: is missing"),
        ("corpora", "--set kind=wikitext --set source=x --set parts=given", "parts: unknown key"),
        ("corpora", "--params params.yaml", "--params needs --name"),
        ("corpora", "--params params.yaml --name masking", "is no section of settings; it holds allow_list"),
        ("corpora", "--set source=x --set cleaning.test_sentences=0", "cleaning.test_sentences"),
        ("generate-labelled", "--set templates=[]", "no templates"),
        (
            "generate-labelled",
            "--set 'learn_from=[{source: gold.jsonl, labels: {PERSN: PERSON}}]'",
            "did you mean 'PERSON'?",
        ),
        ("generate-labelled", "--set unlabelled=[USERNAME]", "'USERNAME' (did you mean 'USER_NAME'?)"),
    )
]

# Models ----------------------------------------------------------------------------------------------------------
CASES += [
    Case("a model that is not there", "perplexity --input generic.txt --model ./nope", "nope"),
    Case("a package that is not there", "perplexity --input generic.txt --model package:no_such_package",
        "no_such_package"),
    Case("a model that is a file", "perplexity --input generic.txt --model mail.txt", "mail.txt"),
    Case("an empty folder as model", "perplexity --input generic.txt --model folder", "folder"),
    Case("a filler as model", "perplexity --input generic.txt --model filler", "filler"),
    *(
        Case(f"perplexity: a model with {kind}", PERPLEXITY + "generic.txt", says, x={f"model/{file}": content})
        for kind, file, content, says in (
            ("another vocabulary", "vocabulary.txt", "a\nb\n", "vocabulary"),
            ("no vocabulary", "vocabulary.txt", None, "vocabulary.txt"),
            ("a vocabulary in latin-1", "vocabulary.txt", b"\xe9\n", "vocabulary"),
        )
    ),
    *(
        Case(f"fill: a filler with {kind}", FILLED + "top_1", says, x={f"filler/{file}": content})
        for kind, file, content, says in (
            ("no configuration", "config.json", None, "lacks config.json"),
            ("a broken configuration", "config.json", "{", "cannot be loaded"),
            ("no weights", "model.safetensors", None, "lacks weights (model.safetensors)"),
            ("weights that are cut", "model.safetensors", b"\x10\0\0\0", "cannot be loaded"),
            ("weights that are text", "model.safetensors", "Zebulon " * 99, "cannot be loaded"),
            ("no tokenizer", "tokenizer.json", None, "lacks a tokenizer (tokenizer.json)"),
            ("a broken tokenizer", "tokenizer.json", "[]", "cannot be loaded"),
        )
    ),
    Case("a filler that is a file", "fill --method top_1 --filler mail.txt" + OF_MASKED, "mail.txt"),
    Case("a filler that is not there", "fill --method top_1 --filler ./nope" + OF_MASKED, "'./nope'"),
    Case("a filler of no package", "fill --method top_1 --filler package:nope/x" + OF_MASKED, "not installed"),
    Case("a filler", FILLED + "top_k --set k=3", status=0),
    Case("a model that is not there", "mask --technique spacy --set tagger.model=nope" + OF_MAIL,
        "'nope' is neither an installed package"),
    Case("a model that is not there", "mask --technique transformers --set tagger.model=./nope" + OF_MAIL, "nope"),
    Case("a model that is not there", "mask --technique crf --set tagger.model=nope" + OF_MAIL, "nope"),
    Case("a folder that is no model", "mask --technique crf --set tagger.model=folder" + OF_MAIL, "folder"),
]  # fmt: skip

# Labelled text ---------------------------------------------------------------------------------------------------
_GOLD = {"text": "Zebulon Quux left", "spans": [{"start": 0, "end": 12, "label": "PERSON"}]}


def _gold(start: object = 0, end: object = 12, label: object = "PERSON", **changes: object) -> str:
    return json.dumps({**_GOLD, "spans": [{"start": start, "end": end, "label": label}], **changes}) + "\n"


_OVERLAP = json.dumps({**_GOLD, "spans": _GOLD["spans"] * 2}) + "\n"
CASES += [
    Case("spans that overlap", JUDGE + "x", "1 spans overlap another one", x=_OVERLAP, status=0),
    *(
        Case(f"evaluate-masking: gold {kind}", JUDGE + "x", says, x=content)
        for kind, content, says in (
            ("that is empty", "", "'x' is empty"),
            ("that is no JSON", "Zebulon\n", "line 1: is not JSON"),
            ("of lists", "[]\n", "line 1: is not a JSON object"),
            ("without a text", '{"spans": []}\n', "line 1: text: Field required"),
            ("without spans", '{"text": "Zebulon"}\n', "line 1: span: Field required"),
            ("with a number as text", '{"text": 5, "spans": []}\n', "text: Input should be a valid string"),
            ("with half a surrogate", '{"text": "\\ud800 Zebulon", "spans": []}\n', "half of a surrogate pair"),
            ("that starts before its text", _gold(-1), "span 1 start: Input should be greater than or equal to 0"),
            ("that ends behind its text", _gold(0, 99), "ends at 99"),
            ("with an empty span", _gold(3, 3), "is empty: it starts at 3"),
            ("with a fraction", _gold(0.5), "span 1 start: Input should be a valid integer"),
            ("with true as an offset", _gold(True), "span 1 start: Input should be a valid integer"),
            ("with an empty label", _gold(label=" "), "span 1 label: String should match pattern"),
            ("with a key twice", '{"text": "a", "text": "Zebulon", "spans": []}\n', "has the key 'text' twice"),
            ("in latin-1", b'{"text": "\xe9", "spans": []}\n', "is not UTF-8"),
            ("of nested lists", "[" * 100_000 + "\n", "line 1: is not JSON"),
            ("with a document that is a list", _gold(document=[]), "document str: Input should be a valid string"),
        )
    ),
    Case("gold", JUDGE + "gold.jsonl", "recall", status=0),
    Case("gold that is not there", JUDGE + "nope", "labelled file 'nope' does not exist"),
    Case("one file twice", JUDGE + "gold.jsonl gold.jsonl", "occurs twice"),
    Case("no gold", "evaluate-masking --technique allow_list", "no labelled file is given"),
    Case("gold", "check-gold --set source=gold.jsonl --output o.jsonl", status=0),
    Case("the output is a file", "generate-labelled --output mail.txt", "mail.txt"),
    Case("sentences", GENERATE + "--set sentences=200", "200 sentences", status=0),
    Case("one template", GENERATE + "--set templates=[x]", "no template falls into the", x="only {CITY}\n"),
    Case("templates that are not there", GENERATE + "--set 'templates=[nope]'", "nope"),
    Case("learn from text that is not labelled",
        GENERATE + "--set 'learn_from=[{source: mail.txt}]'", "line 1: is not JSON"),
    Case("no folder", TRAIN + "nope", "'nope/train.jsonl' does not exist"),
    Case("empty files", TRAIN + "x", "is empty", x={"x/train.jsonl": "", "x/test.jsonl": ""}),
    Case("labels of no class", TRAIN + "x", "'shoe'",
        x={"x/train.jsonl": _gold(label="shoe"), "x/test.jsonl": _gold()}),
    Case("no kind", "train-tagger --output o --labelled folder", "kind"),
    Case("labelled text", TRAIN + "x", "held-out",
        x={"x/train.jsonl": _gold() * 30, "x/test.jsonl": _gold()}, status=0),
]  # fmt: skip

# Facts about persons ---------------------------------------------------------------------------------------------
PERSONS = "persons --set attackers=[verbatim] --facts x --texts "
_PERSON = {"description": "", "PIIs": [{"tag": "NAME", "keyword": "Zebulon"}]}
CASES += [
    Case("facts and text", PERSONS + "x", "100.0", x=json.dumps({"text": "Quux", "subjects": [_PERSON]}), status=0),
    Case("no facts", PERSONS + "x", "no person of the documents has a fact", x=json.dumps({"text": "Quux"})),
    Case("an empty file", PERSONS + "x", "no person of the documents has a fact", x=""),
    Case("text instead of facts", PERSONS + "x", "'x': line 1 is not JSON", x="Zebulon Quux\n"),
    Case("no text to compare", PERSONS + "nope", "'nope' does not exist", x=json.dumps({"text": "Quux"})),
]  # fmt: skip

# n-best lists ----------------------------------------------------------------------------------------------------
_LIST = {"utterance_id": "u", "reference": "the cat", "hypotheses": [{"text": "the cat", "score": -1.0}]}


def _nbest(**changes: object) -> str:
    return json.dumps({**_LIST, **changes}) + "\n"


def _scored(score: str) -> str:
    return _nbest().replace("-1.0", score)


CASES += [
    *(
        Case(f"rescore: lists {kind}", RESCORE + "x", says, x=content)
        for kind, content, says in (
            ("that are empty", "", "is empty"),
            ("that are no JSON", "Zebulon\n", "line 1: is not JSON"),
            ("that are cut", _nbest()[:30], "line 1: is not JSON"),
            ("of numbers", "5\n", "line 1: is no JSON object"),
            ("without an id", _nbest(utterance_id=""), "has no 'utterance_id'"),
            ("with an id twice", _nbest() * 2, "is in line 1 too"),
            ("without hypotheses", _nbest(hypotheses=None), "has no list of 'hypotheses'"),
            ("with a hypothesis of text", _nbest(hypotheses=["Zebulon"]), "1 of 1 hypotheses have no 'score'"),
            ("without scores", _nbest(hypotheses=[{"text": "Zebulon"}]), "no 'score' that is a finite number"),
            ("with a score of NaN", _scored("NaN"), "no 'score' that is a finite number"),
            ("with an infinite score", _scored("1e999"), "no 'score' that is a finite number"),
            ("with a score of 400 digits", _scored("9" * 400), "no 'score' that is a finite number"),
            ("with a score of 5,000 digits", _scored("9" * 5000), "line 1: is not JSON"),
            ("with a score that is text", _scored('"-1"'), "no 'score' that is a finite number"),
            ("with true as a score", _scored("true"), "no 'score' that is a finite number"),
            ("with a reference that is a list", _nbest(reference=[]), "has no 'reference'"),
            ("of nested lists", "[" * 100_000, "line 1: is not JSON"),
            ("in latin-1", b'{"utterance_id": "\xe9"}\n', "is not UTF-8"),
            ("that are compressed and cut", {"x": gzip.compress(_nbest().encode())[:20]}, "x"),
            ("with a key twice", _nbest()[:-2] + ', "reference": "Zebulon"}\n', "has the key 'reference' twice"),
        )
    ),
    Case("lists that are not there", RESCORE + "nope", "'nope' does not exist"),
    Case("test is dev", RESCORE + "dev.jsonl", "warning", status=0),
    Case("an empty list", RESCORE + "x", x=_nbest() + _nbest(utterance_id="v", hypotheses=[]), status=0),
    Case("lists", "check-nbest --set source=dev.jsonl --output o.jsonl", status=0),
]  # fmt: skip

# params.yaml, the shipped file with one part replaced -----------------------------------------------------------
SHIPPED = (Path(__file__).parents[2] / "params.yaml").read_bytes()
CORPUS, ALLOW_LIST = "kind: chitchat\n    source: constraints.txt", "allow_list: {kind: allow_list}"
REPLACED = {
    "a key twice": ("evaluation: {", "evaluation: {}\nevaluation: {",
        "column 1: the key 'evaluation' occurs twice"),
    "a tab": ("masking:\n  allow_list", "masking:\n\tallow_list",
        "column 1: found character '\\t' that cannot start any token; indent with spaces"),
    "a list that is not closed": ("compare:\n  datasets: [chat]", "compare:\n  datasets: [chat", "is not YAML"),
    "a section of no name": ("evaluation: {", "evalution: {", "did you mean 'evaluation'?"),
    "a key of no name": ("top_k: {kind: top_k, k: 10}", "top_k: {kind: top_k, kk: 10}",
        "filling.top_k.kk: unknown key (did you mean 'k'?)"),
    "a number as text": ("k: 10}\n  # For", "k: ten}\n  # For", "filling.top_k.k: "),
    "k of 0": ("k: 10}\n  # For", "k: 0}\n  # For", "(got 0)"),
    "k that is not finite": ("k: 10}\n  # For", "k: .inf}\n  # For", "filling.top_k.k"),
    "a merge of nothing": (ALLOW_LIST, "allow_list: {<<: *nothing}", "undefined alias"),
    "a tag": (ALLOW_LIST, "allow_list: !!python/object:os.system {}", "params.yaml is not YAML: line "),
    "Norway as a name": ("corpora:\n  chat:", "corpora:\n  no: {kind: files, source: x}\n  chat:",
        "(no, off and on as truth values): put quotes"),
    "yes as a technique": ("techniques: [allow_list,", "techniques: [yes,", "(got True)"),
    "an unknown corpus": ("compare:\n  datasets: [chat]", "compare:\n  datasets: [chta]", "did you mean 'chat'?"),
    "no dataset": ("compare:\n  datasets: [chat]", "compare:\n  datasets: []", "datasets"),
    "a dataset twice": ("compare:\n  datasets: [chat]", "compare:\n  datasets: [chat, chat]", "occurs twice"),
    "a negative seed": ("seeds: [1]", "seeds: [-1]", "compare.seeds.0"),
    "a huge seed": ("seeds: [1]", f"seeds: [{10**30}]", "compare.seeds.0"),
    "two documents": ("evaluation: {", "---\nevaluation: {", "params.yaml is not YAML"),
    "a date as a name": ("techniques: [allow_list,", "techniques: [2026-01-01,", "techniques.0"),
    "a source with a colon": (CORPUS, "kind: files\n    source: https://example.org/mail.txt", "a source is a path"),
    "a source that is empty": (CORPUS, "kind: files\n    source: ''", "corpora.chat"),
    "a source with a line end": (CORPUS, 'kind: files\n    source: "a\\nb"', "corpora.chat"),
    "a source that is a number": (CORPUS, "kind: files\n    source: 5", "corpora.chat"),
    "latin-1": ("# The experiment", b"# \xe9", "'params.yaml' is not UTF-8 (byte 3)"),
}  # fmt: skip
FITTING = {
    "an anchor": (ALLOW_LIST, "allow_list: &a {kind: allow_list}\n  other: *a"),
    "a merge key": (ALLOW_LIST, "allow_list: &a {kind: allow_list}\n  other: {<<: *a, markers: {style: class}}"),
    "a source with spaces": (CORPUS, "kind: files\n    source: my own $(touch PWNED) mail.txt"),
    "a byte order mark": ("# The experiment", "\ufeff# The experiment"),
}  # fmt: skip


def replaced(old: str, new: str | bytes) -> bytes:
    """The shipped parameters with one part replaced."""
    assert SHIPPED.count(old.encode()) == 1
    return SHIPPED.replace(old.encode(), new if isinstance(new, bytes) else new.encode())


CASES += [Case(f"params.yaml: {name}", PARAMS, says, replaced(old, new)) for name, (old, new, says) in REPLACED.items()]
CASES += [Case(f"params.yaml: {name}", PARAMS, x=replaced(*parts), status=0) for name, parts in FITTING.items()]
BAD_NAMES = (
    "a b", "a'b", 'a"b', "..", "../a", "a/b", "$(touch PWNED)", "a;touch PWNED", "`touch PWNED`", "a.b", "a@b", "a,b",
    "{a}", "-a", "über", "a\nb", "", "a" * 300,
)  # fmt: skip
CASES += [
    Case(f"params.yaml: a dataset called {name[:20]!r}", PARAMS, "letters, digits and underscores only",
        replaced("\ncorpora:\n", f"\ncorpora:\n  {json.dumps(name)}: {{kind: files, source: x}}\n"))
    for name in BAD_NAMES
]  # fmt: skip
CASES += [
    Case("params.yaml: a list", PARAMS, "must hold sections", x="- 1\n"),
    Case("params.yaml: not there", PARAMS, "'params.yaml' does not exist", x={"params.yaml": None}),
    Case("params.yaml: a folder", PARAMS, "'params.yaml' is a folder", x={"params.yaml": None, "params.yaml/x": ""}),
    Case("params.yaml: ten thousand brackets", PARAMS, "nested too deeply", x="a: " + "[" * 10_000),
    Case("params.yaml: a billion laughs", PARAMS, "unknown key", x="a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"),
    Case("outside of a project", "plan", "dvc.yaml"),
    Case("a section that is not there", "mask --technique nope --params params.yaml" + OF_MAIL,
        "no section 'masking.nope'"),
    Case("a section that is not there", "fill --method topk --params params.yaml" + OF_MASKED, "did you mean 'top_k'"),
    Case("outside of a project", "add mail.txt", "dvc.yaml"),
    *(
        Case(f"release: a name such as {name!r}", f"release chat/x/y-1 --name {name}", "a release's name has letters")
        for name in ("../a", "a/b", "'a b'", "''", "'$(touch PWNED)'", ".", "über", "'a;b'", "a" * 300)
    ),
    Case("outside of a project", "where-from nope"),
    Case("outside of a project", "restore nope"),
    Case("a profile that is not there", "profile nope", "nope"),
]  # fmt: skip
