"""The rungs of the ladder of attackers of masked words, from the weakest: one row each.

Each attacker has the sources of the rungs below, and one more. ``tasks.audit.ladder`` has the function that adds
the source, of the same name.
"""

PUBLIC = "public"
"""The first rung, which every audit has: public word counts and a public masked language model."""
RUNGS = {
    "released": "a language model adapted on the released text",
    "author": "the document's neighbouring lines as context",
    "background": "passages of background documents",
    "raw": "a language model adapted on the raw text",
}
"""Names of the rungs above ``PUBLIC``, each with the source that it adds."""


def figure_of(rung: str) -> str:
    """Name of the measure of a rung: the share of masked words that its first guess restores."""
    return "reidentified" if rung == PUBLIC else f"reidentified_{rung}"


def rung_of(figure: str) -> str | None:
    """The rung that a measure is of; ``None`` if it is no figure of the ladder."""
    return next((rung for rung in (PUBLIC, *RUNGS) if figure == figure_of(rung)), None)
