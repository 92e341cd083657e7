"""Fill the markers of masked text with words.

Reads text with [MASK] (or class markers such as [PERSON]), one sentence a line, and writes the same lines with
one word in the place of each marker. Everything else in a line stays as it is. What a filler writes is not meant
to be the masked word but a substitute of its kind.

  --method top_1    the filler's best word; markers of a sentence are filled from left to right, or in another --order
  --method top_k    a random one of the K best words (--k), not one of the kept words if that can be
  --method sample   a draw from the filler's whole distribution over words that are not kept words
  --method log_linear  a draw that weighs the filler's probabilities against how frequent words are, by weights that are
                    learned from generic text (--tuning-text, --word-counts)
  --method free     a causal language model writes the whole sentence; what it gets wrong is filled by --method top_1
  --method unigram  no filler: a word that is no kept word, by its frequency in the word counts
  --method surrogate  no filler: a name for a name, a place for a place, other figures for figures, by the class of the
                    marker; with --sidecar of the same gender, kind and form, and the same one for the same word of a
                    line, of a document (--documents) or of the corpus (--consistent-within corpus)

Kept words are those that the masking technique never masks (--kept-words, written by 'palimpsest mask').

A long fill may be interrupted at any moment: the same command goes on with what was finished and writes the same bytes
as if nothing had happened. With several GPUs, --devices shares the lines among them; the result is the same.

With the sidecar (--sidecar, private) the report says how often a substitute is the very word that was masked, beside
what guessing by frequency would restore; --forbid-original keeps it from ever being so. That leaks a little: whoever
knows of it knows one word that was not masked at each place. It is for methods that draw, from a secret that only the
sidecar tells: without chance, filling again without the sidecar would show where a word was avoided, and which.

Example:
  palimpsest fill --input masked.txt --output filled.txt --filler bert-base-uncased --method top_k
"""

import argparse
from typing import Any

from tasks.errors import ParameterError
from tasks.filling.fill_stage import DEFAULT_WORK_FOLDER, fill_text
from tasks.settings.seeds import check_seed
from tasks.threads import threads_of

SUMMARY = "fill the markers of masked text with a language model's words"
READS = ("input", "kept_words", "word_counts", "sidecar", "documents", "tuning_text", "generic_text", "filler")
WRITES = ("output",)
STREAMS = ("input", "output")
METHODS = ("top_1", "top_k", "sample", "log_linear", "free", "unigram", "surrogate")
_OVERRIDES = (
    "classes",
    "consistent_within",
    "copies",
    "k",
    "temperature",
    "batch_sentences",
    "merge_markers",
    "forbid_original",
    "order",
    "prior",
    "prior_steps",
    "tuning_places",
    "beyond_vocabulary",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--input", required=True, metavar="FILE", help="masked text, one sentence a line; '-': stdin")
    parser.add_argument("--output", required=True, metavar="FILE", help="where the filled text goes; '-': stdout")
    parser.add_argument(
        "--method",
        required=True,
        help=f"how a word is chosen: {', '.join(METHODS)}; with --params a name of the section 'filling'",
    )
    parser.add_argument(
        "--filler",
        metavar="MODEL",
        help="masked or causal LM: hub name, folder, or package:NAME/FOLDER; not for methods without a filler",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the random methods (default: 1)")
    parser.add_argument("--kept-words", metavar="FILE", help="words that were never masked, one a line; empty: no list")
    parser.add_argument(
        "--word-counts",
        metavar="FILE",
        help="word<TAB>count of generic text: what unigram draws from, and how words are usually written",
    )
    parser.add_argument(
        "--sidecar",
        metavar="FILE",
        help="private record of what was masked: the report then counts fills that are the masked word",
    )
    parser.add_argument(
        "--documents",
        metavar="FILE",
        help="the document of each line, by any name, one a line, such as a private corpus's train.documents; needs "
        "--sidecar: within a document the same word has the same surrogate (surrogate, and --classes match), and noisy "
        "counts protect it with --privacy-unit document; with --params only where 'consistent_within: document' or "
        "'unit: document' says so",
    )
    parser.add_argument(
        "--tuning-text",
        metavar="FILE",
        help="generic text that the filler was not trained on: log_linear learns its weights from it, "
        "other methods do not read it",
    )
    parser.add_argument(
        "--generic-text",
        metavar="FILE",
        help="generic text that says, with the words that were not masked, how frequent words are in the private "
        "domain: methods with 'prior: domain' or 'counted' weigh it, other methods do not read it",
    )
    parser.add_argument("--report", metavar="FILE", help="write what was measured to this JSON file")
    parser.add_argument("--threads", type=int, help="threads of the model (default: resources.threads, else 1)")
    parser.add_argument(
        "--devices",
        metavar="N",
        default="1",
        help="share the work among so many GPUs, or 'auto': all there are; without a GPU so many processes (default: "
        "1, the GPU if there is one)",
    )
    parser.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="go on with what an interrupted run of the same work has finished (default), or start anew; what is read "
        "from or written to a standard stream is never resumed",
    )
    parser.add_argument(
        "--work-folder",
        metavar="FOLDER",
        help=f"where finished parts lie until the output is complete; private (default: {DEFAULT_WORK_FOLDER})",
    )
    settings = parser.add_argument_group("settings", "override those of params.yaml or the defaults")
    settings.add_argument("--params", metavar="FILE", help="params.yaml of an experiment")
    settings.add_argument("--k", type=int, help="top_k: how many candidates (default: 10)")
    settings.add_argument("--temperature", type=float, help="sample: below 1 sharper, above 1 flatter (default: 1)")
    settings.add_argument(
        "--order",
        help="in which order a masked language model fills the markers of a sentence: left_to_right (default), "
        "all_at_once or most_confident_first",
    )
    settings.add_argument(
        "--prior",
        help="unigram, log_linear: how frequent words are taken to be: as in the word counts (word_counts, "
        "the default), as in the private domain (domain, by --generic-text), as noisy counts of the masked words say "
        "(counted, by --sidecar and --generic-text), or, not for unigram, as learned (tuning_text)",
    )
    settings.add_argument(
        "--epsilon",
        type=float,
        help="prior counted: of differential privacy, for a line or a document: from 0.02 to 64 (default: 4)",
    )
    settings.add_argument(
        "--privacy-unit",
        help="prior counted: whose words epsilon protects: of a line (default), or of a document (by --documents)",
    )
    settings.add_argument(
        "--words-per-unit",
        type=int,
        help="prior counted: so many words of a line or document are counted at most: 50 times epsilon, 1000 at most "
        "(default: 1)",
    )
    settings.add_argument(
        "--prior-steps",
        type=int,
        help="log_linear: EM steps that adjust the frequencies of words to the masked text (default: 0)",
    )
    settings.add_argument(
        "--tuning-places", type=int, help="log_linear: most words to learn weights from (default: 1000)"
    )
    settings.add_argument(
        "--beyond-vocabulary",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="log_linear: draw words that the filler has not as one piece too, by their share of the frequency "
        "(default: no)",
    )
    settings.add_argument("--batch-sentences", type=int, help="sentences per forward pass (default: 64)")
    settings.add_argument(
        "--merge-markers",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="one word for a run of markers, as in the paper (default), or one for each",
    )
    settings.add_argument(
        "--classes",
        help="match: a fill has the class of its marker ([PERSON], or the sidecar's label), checked by a tagger; "
        "ignore (default)",
    )
    settings.add_argument(
        "--consistent-within",
        help="surrogate: the same word has the same surrogate within a line (default), its document (needs "
        "--documents), or the whole corpus",
    )
    settings.add_argument(
        "--forbid-original",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether the masked word may never be its own substitute; needs --sidecar, and a method that draws from "
        "all words; what its absence says adds up over the fills of several seeds, so give away one (default: it may)",
    )
    settings.add_argument(
        "--copies",
        type=int,
        help="fill the text so many times, each time by other draws, one copy behind the other in the output, for a "
        "model to be adapted on all of them (default: 1)",
    )
    cell = parser.add_argument_group("cell", "what the report says it belongs to; changes no result")
    cell.add_argument("--dataset", help="name of the private corpus")
    cell.add_argument("--technique", help="name of the masking technique")
    cell.add_argument("--filler-name", help="name of the filler (default: --filler)")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of ``params.yaml`` that the command reads."""
    return [f"filling.{arguments.method}"]


def run(arguments: argparse.Namespace) -> None:
    """Fill a corpus."""
    check_seed(arguments.seed)
    fill_text(arguments, _settings(arguments), threads_of(arguments))


def _settings(arguments: argparse.Namespace) -> Any:
    """The method's settings with the options that override them."""
    from tasks.filling.settings import FillingSettings
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import as_plain, check_settings
    from tasks.spelling import nearest

    overrides = {name: value for name in _OVERRIDES if (value := getattr(arguments, name)) is not None}
    if arguments.documents and not arguments.params and arguments.method == "surrogate":
        overrides.setdefault("consistent_within", "document")
    if arguments.params:
        section = sections(arguments)[0]
        values = as_plain(read_sections(arguments.params, [section])[section])
    elif arguments.method in METHODS:
        values = {"kind": arguments.method}
    else:
        raise ParameterError(
            f"--method {arguments.method!r} is not known{nearest(arguments.method, METHODS)}; "
            f"allowed: {', '.join(METHODS)}"
        )
    counts = {"epsilon": arguments.epsilon, "unit": arguments.privacy_unit, "words_per_unit": arguments.words_per_unit}
    counts = {name: value for name, value in counts.items() if value is not None}
    if counts:
        overrides["counts"] = {**(values.get("counts") or {}), **counts}
    elif overrides.get("prior", "counted") != "counted":
        values.pop("counts", None)
    return check_settings(FillingSettings, {**values, **overrides}, f"--method {arguments.method}")
