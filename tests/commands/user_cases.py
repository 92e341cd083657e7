"""What users hand in: what is refused by its options, what by the content of a file ``x``, and what is accepted.

A command runs in a folder with the files of ``handed_out``; whatever it writes begins with ``o``.
"""

import gzip
import json
from pathlib import Path
from typing import NamedTuple

Files = bytes | str | dict[str, bytes | str | None] | None
"""Content of ``x``, or of several files by path; ``None`` deletes one that is handed out."""


class Case(NamedTuple):
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
UNIGRAM = "fill --method unigram --output o.txt --input masked.txt "
COUNTED = UNIGRAM + "--word-counts counts.tsv --generic generic --sidecar sidecar.jsonl --set prior=counted --set "
SURROGATE = "fill --method surrogate --output o.txt --input masked.txt "
LOG_LINEAR = "fill --method log_linear --output o.txt --input masked.txt --filler filler --word-counts counts.tsv "
PERPLEXITY = "perplexity --model model --scores o.tsv --set bootstrap_samples=100 --input "
ADAPT = "adapt --model model --valid generic.txt --output o --input "
PREVIEW = "preview --technique allow_list --html o.html --input "
COUNT = "count-words --output o.tsv --input "
PRETRAIN = "pretrain --set kind=ngram --vocabulary vocabulary.txt --output o --input "
JUDGE = "evaluate-masking --technique allow_list --errors o.txt --gold "
RESCORE = "rescore --model model --dev dev.jsonl --output o.jsonl --nbest "
TRAIN = "train-tagger --set kind=crf --set embeddings=null --set iterations=2 --output o --labelled "
GENERATE = "generate-labelled --output o "
PERSONS = "persons --set attackers=[verbatim] --facts x --texts "
SPEECH, CORPORA = "speech-corpus --output o --set ", "corpora --output o "
PARAMS = "cells"

BAD_TEXTS: list[tuple[Files, str]] = [
    (b"\n \n\t\n", "it needs at least one sentence"),
    (b"fine\nZebulon \xe9t\xe9\n", "x: line 2: byte 9 (0xe9) is not UTF-8"),
    (b"\xff\xfeZebulon", "it is not UTF-16 after line 0"),
    (b"fine\n\xed\xa0\x80 Zebulon\n", "x: line 2: byte 1 (0xed) is not UTF-8"),
    (b"Zebulon \xe2\x82", "x: line 1: byte 9 (0xe2) is not UTF-8"),
    (gzip.compress(b"Zebulon\n"), "is an archive or compressed, and one sentence"),
    (None, "'x' does not exist"),
    ({"x/y": "Zebulon\n"}, "'x' is a folder"),
]
READERS = (MASK, FILL, PERPLEXITY, ADAPT, PREVIEW, COUNT, PRETRAIN)
ODD_TEXTS = [
    "Zebulon \x00 [MASK] here\n",
    "Zebulon\u2028[MASK]\x85and\x0bon\x0cand\x1con\n",
    "\ufeffZebulon [MASK]\n",
    "Zebulon [MASK]\r\n\r\nthe end\r\n",
    "\x1b[31mZebulon\x07 [MASK]\x7f\n",
    "שלום עולם [MASK]\n\u202eZebulon [MASK]\u202c\n",
    "😀😀 Zebulon 👩‍👩‍👧 🇩🇪 [MASK]❤️\n",
    "[MASK] [\\MASK] [[MASK]] [PERSON]x Zebulon [\\\\PERSON]\n",
    "Zebulon [MASK], " * 500 + "\n",
    "z" * 200_000 + " [MASK]\n",
    "[MASK]\n" + "\n" * 2_000,
    "... !!! ((([MASK]\n",
]

# Refused by their options ----------------------------------------------------------------------------------------
REFUSED: dict[str, list[tuple[str, str]]] = {
    "": [("maks", "did you mean 'mask'?"), ("plan", "dvc.yaml"), ("profile nope", "nope")],
    # Paths.
    TO: [
        ("mail.txt", "is --input 'mail.txt', which is read"),
        ("link.txt", "which is read"),
        ("folder", "'folder': it is a folder"),
        ("mail.txt/o", "--output 'mail.txt/o' cannot be written"),
        ("- --report -", "would both go to standard output"),
    ],
    MASK: [
        ("'a\0b'", "--input"),
        ("mail.txt --report o.txt", "are the same"),
        ("mail.txt --set path=nolist", "word list 'nolist' does not exist"),
        ("mail.txt --threads 0", "--threads 0 is not allowed"),
    ],
    "mask" + OF_MAIL + " --technique ": [
        ("alow_list", "did you mean 'allow_list'?"),
        ("transformers", "tagger.model: is missing"),
    ],
    FILL: [
        ("mail.txt", "has no marker such as [MASK]"),
        ("masked.txt --set k=5", "k: unknown key"),
        ("masked.txt --seed -1", "seed -1"),
        ("masked.txt --generic generic --set prior=counted", "counts the masked words; give --sidecar"),
    ],
    COUNTED: [
        ("counts.epsilon=0", "counts.epsilon"),
        ("counts.words_per_unit=201", "to 200, or raise epsilon to 4.02"),
        ("counts.unit=document", "with counts.unit='document' protects all lines of a document together"),
    ],
    FILLED: [
        ("top_2", "did you mean 'top_k'?"),
        ("top_k --set k=16", "k=16 is more than the"),
        ("top_k --set k=1 --set copies=2", "k=1 takes the best word, so that copies=2 would be the same text 2"),
        *((f"top_k --set k={value}", "k") for value in ("0", "1.5", "many", ".nan")),
    ],
    "fill --method top_1" + OF_MASKED + " --filler ": [("./nope", "'./nope'"), ("package:nope/x", "not installed")],
    LOG_LINEAR: [
        ("", "give --generic"),
        ("--generic generic --sidecar sidecar.jsonl --set prior=counted --set classes=match",
            "epsilon would not hold for the fill"),
    ],
    SURROGATE: [
        ("--set consistent_within=document", "needs the document of each line; give --documents"),
        ("--output sidecar.jsonl --sidecar sidecar.jsonl", "which is read"),
    ],
    PERPLEXITY: [
        ("mail.txt --sidecar folder", "holds no sidecar"),
    ],
    "perplexity --input generic.txt --model ": [
        ("./nope", "nope"),
        ("m --scores o --report o", "--scores 'o' and --report 'o'"),
    ],
    "adapt --model model --input generic.txt --output ": [
        ("model", "which is read"),
        (".", "replaced as a whole"),
        ("o", "give ngram.generic_weight or --valid"),
    ],
    "audit --members mail.txt ": [
        ("", "nothing to attack: give --text, or --model with --non-members"),
        ("--model m", "--model needs --non-members"),
        ("--text generic.txt", "not equally many lines"),
    ],
    # Corpora, labelled text, models.
    CORPORA: [
        ("", "source: is missing"),
        ("--set source=mail.txt --report o/valid.txt", "is 'valid.txt' of --output 'o'"),
        ("--params params.yaml --name masking", "is no section of settings; it holds allow_list"),
    ],
    JUDGE: [
        ("nope", "labelled file 'nope' does not exist"),
        ("gold.jsonl --gold-set a --set 'evaluation.gold_sets={a: {source: gold.jsonl, labels: {x: NOBODY}}}'",
            "'NOBODY' is no class"),
    ],
    TRAIN: [("nope", "'nope/train.jsonl' does not exist"), ("folder --set epochs=3", "epochs: unknown key")],
    SPEECH: [("source=nope", "'nope' does not exist"), ("kind=kaldy --set source=x", "did you mean 'kaldi'")],
    "release chat/x/y-1 --name ": [
        (name, "a release's name has letters")
        for name in ("../a", "'a b'", "''", "'$(touch PWNED)'", ".", "über", "'a;b'", "a" * 300)
    ],
}  # fmt: skip

# Refused by the content of a file --------------------------------------------------------------------------------
SHIPPED = (Path(__file__).parents[2] / "params.yaml").read_bytes()
CORPUS, ALLOW_LIST = "kind: chitchat\n    source: constraints.txt", "allow_list: {kind: allow_list}"
SPAN = {"start": 0, "end": 7, "label": "MASK", "source": "allow_list", "original": "Zebulon", "marker": 0}
LIST = {"utterance_id": "u", "reference": "the cat", "hypotheses": [{"text": "the cat", "score": -1.0}]}
PERSON = {"description": "", "PIIs": [{"tag": "NAME", "keyword": "Zebulon"}]}
FACTS = json.dumps({"text": "Quux", "subjects": [PERSON]})


def shipped(old: str, new: str | bytes) -> bytes:
    """The shipped parameters with one part replaced."""
    assert SHIPPED.count(old.encode()) == 1
    return SHIPPED.replace(old.encode(), new if isinstance(new, bytes) else new.encode())


def sidecar() -> str:
    lines = [{"line": 1, "spans": [SPAN]}, *({"line": number, "spans": []} for number in range(2, 5))]
    return "".join(json.dumps(line) + "\n" for line in lines)


def gold(start: object = 0, end: object = 12, label: object = "PERSON", **changes: object) -> str:
    spans = [{"start": start, "end": end, "label": label}]
    return json.dumps({"text": "Zebulon Quux left", "spans": spans, **changes}) + "\n"


def nbest(**changes: object) -> str:
    return json.dumps({**LIST, **changes}) + "\n"


WORD_COUNTS: list[tuple[Files, str]] = [
    ("the\t3\ncat\n", "line 2 is not 'word<TAB>count'"),
    ({}, "file of word counts 'x' does not exist"),
]
BAD_NAMES = ("a b", "a'b", "../a", "$(touch PWNED)", "a;touch PWNED", "a@b", "{a}", "über", "a\nb", "")
REFUSED_CONTENT: dict[str, list[tuple[Files, str]]] = {
    **{command + "x": BAD_TEXTS for command in READERS},
    MASK + "-": [("", "standard input is empty"), (b"Zebulon\n\xe9\n", "standard input: line 2: byte 1 (0xe9)")],
    FILL + "-": [("Zebulon Quux\n", "has no marker such as [MASK]")],
    PERPLEXITY + "-": [("the cat\n", "--input '-' is a stream")],
    MASK + "mail.txt --set path=x": [
        ("\n\n", "is empty; it needs one word a line"),
        (b"the\nZebulon\xe9\n", "x: line 2: byte 8"),
        ("the cat sat on the mat\na dog and a cat sat\n", "no word list"),
    ],
    "mask --technique vocabulary_threshold --set allowed_words=1 --word-counts x" + OF_MAIL: WORD_COUNTS,
    UNIGRAM + "--word-counts x": [*WORD_COUNTS, ("the\t0\ncat\t0\n", "hold no word")],
    FILL + "masked.txt --allowed-words x": [
        ("the\ncat\nsat\non\nmat\na\ndog\nand\ntoday\n", "nothing to draw"),
    ],
    "audit --text mail.txt --members x": [
        ({"x/train.txt": "a\nb\nc\nd\n", "x/train.documents": "one\n"}, "'x/train.documents' has 1 lines, and"),
    ],
    FILL + "masked.txt --sidecar x": [
        ("", "ends before line 1"),
        (sidecar(), "the sidecar has 1 markers"),
        ("[" * 100_000, "line 1 is not a sidecar record"),
    ],
    ADAPT + "generic.txt": [
        ({"o/diary.txt": "kept"}, "holds 'diary.txt', which is no part of a model"),
    ],
    FILLED + "top_1": [
        ({"filler/model.safetensors": None}, "lacks weights (model.safetensors)"),
        ({"filler/model.safetensors": b"\x10\0\0\0"}, "cannot be loaded"),
    ],
    CORPORA + "--set source=x.jsonl": [
        ({"x.jsonl": '{"body": "Zebulon"}\n'}, "line 1 has no text field 'text'; name it with text_field"),
    ],
    JUDGE + "x": [
        ("", "'x' is empty"),
        ('{"text": "\\ud800 Zebulon", "spans": []}\n', "half of a surrogate pair"),
        (gold(0, 99), "ends at 99"),
        ('{"text": "a", "text": "Zebulon", "spans": []}\n', "has the key 'text' twice"),
    ],
    GENERATE + "--set templates=[x]": [
        ("Hello {CITY}\n{CITTY}\n", "line 2: unknown kind of slot 'CITTY' (did you mean 'CITY'?)"),
        ("# a comment\n\n{city}\n#hashtag\n{CITY\n", "line 5: expected '}'"),
    ],
    TRAIN + "x": [
        ({"x/train.jsonl": "", "x/test.jsonl": ""}, "is empty"),
        ({"x/train.jsonl": gold(label="shoe"), "x/test.jsonl": gold()}, "'shoe'"),
    ],
    RESCORE + "x": [
        (nbest() * 2, "is in line 1 too"),
        *((nbest().replace("-1.0", score), "no 'score' that is a finite number") for score in ("1e999", '"-1"')),
        (gzip.compress(nbest().encode())[:20], "x"),
    ],
    PARAMS: [
        (shipped("evaluation: {", "evaluation: {}\nevaluation: {"), "column 1: the key 'evaluation' occurs twice"),
        (shipped("masking:\n  allow_list", "masking:\n\tallow_list"), "cannot start any token; indent with spaces"),
        (shipped(ALLOW_LIST, "allow_list: !!python/object:os.system {}"), "params.yaml is not YAML: line "),
        (shipped("corpora:\n  chat:", "corpora:\n  no: {kind: files, source: x}\n  chat:"),
            "(no, off and on as truth values): put quotes"),
        *((shipped(CORPUS, f"kind: files\n    source: {one}"), "corpora.chat") for one in ("''", '"a\\nb"', "5")),
        *(
            (shipped("\ncorpora:\n", f"\ncorpora:\n  {json.dumps(name)}: {{kind: files, source: x}}\n"),
                "letters, digits and underscores only")
            for name in BAD_NAMES
        ),
        ({"params.yaml": None}, "'params.yaml' does not exist"),
        ("a: " + "[" * 10_000, "nested too deeply"),
        ("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "unknown key"),
    ],
}  # fmt: skip

# Accepted --------------------------------------------------------------------------------------------------------
ACCEPTED: list[tuple[str, str, Files]] = [
    *((command + "x", "", text) for text in ODD_TEXTS for command in (MASK, FILL, COUNT)),
    (MASK + "x", "carriage return", "Zebulon\rthe\rend\r"),
    (MASK + "x", "DEVANAGARI", "मैं दिल्ली में रहता हूँ\n" * 9),
    (TO.replace("mail.txt", "x") + "-", "\u202e[MASK]\u202c the", "\u202eZebulon\u202c the\n"),
    ("mask --technique crf --output o.txt --input x", "100% de", "Ich wohne in Stuttgart und arbeite dort.\n" * 9),
    (MASK + "mail.txt --report -", '"measured": {', None),
    (PREVIEW + "mail.txt", "mode 0600", None),
    (PERPLEXITY + "x", "over known words none", "Zebulon Quux\n"),
    (PERPLEXITY + "mail.txt --sidecar sidecar.jsonl", "masked words", None),
    (ADAPT + "masked.txt --markers token", "", None),
    (FILL + "masked.txt --allowed-words x", "no list of never-masked words, so any word may be written", ""),
    (JUDGE + "x", "1 spans overlap another one", gold(spans=json.loads(gold())["spans"] * 2)),
    (GENERATE + "--set sentences=60", "60 sentences", None),
    (TRAIN + "x", "held-out", {"x/train.jsonl": gold() * 30, "x/test.jsonl": gold()}),
    (PERSONS + "x", "100.0", FACTS),
    (PARAMS, "", shipped(CORPUS, "kind: files\n    source: my own $(touch PWNED) mail.txt")),
    (PARAMS, "", shipped("# The experiment", "\ufeff# The experiment")),
]  # fmt: skip

CASES = [
    *(Case(command + options, says) for command, rows in REFUSED.items() for options, says in rows),
    *(Case(command, says, x) for command, rows in REFUSED_CONTENT.items() for x, says in rows),
    *(Case(command, says, x, 0) for command, says, x in ACCEPTED),
    Case("mask", "required: --input, --output, --technique", None, 2),
    Case(MASK + "mail.txt --techniqe x", "unrecognized arguments: --techniqe x", None, 2),
    Case(FILL + "masked.txt --seed 1.5", "invalid int value", None, 2),
]
