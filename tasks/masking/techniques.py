"""The registered masking techniques: those of this package and of other packages (paper 3.1)."""

from typing import TYPE_CHECKING, get_args

from tasks.errors import ParameterError
from tasks.masking.combination import GROUP, PARTS, Combination
from tasks.masking.settings import TaggerSettings, TechniqueSettings
from tasks.settings.base import any_of, registered
from tasks.spelling import nearest

TECHNIQUES = registered(GROUP, (*PARTS, Combination))
"""Settings classes by kind, in the order of the help."""
if TYPE_CHECKING:
    AnyTechnique = TechniqueSettings
else:
    AnyTechnique = any_of(GROUP, (*PARTS, Combination))
_TAGGERS = get_args(get_args(TaggerSettings)[0])
TAGGER_KINDS = tuple(get_args(settings.model_fields["kind"].annotation)[0] for settings in _TAGGERS)
TECHNIQUES_HELP = "\n".join(
    [
        "Techniques:",
        *(f"  {kind:<22}{technique.sentence}" for kind, technique in TECHNIQUES.items()),
        f"  {', '.join(TAGGER_KINDS)}: an entity tagger of that kind",
    ]
)


def settings_named(name: str | None) -> dict[str, object]:
    """The settings for a name without a parameter file: a kind of technique or of tagger.

    Raises ``ParameterError`` with the nearest spelling if the name is unknown.
    """
    if name in TAGGER_KINDS:
        return {"kind": "entity_tagger", "tagger": {"kind": name}}
    if name in TECHNIQUES:
        return {"kind": name}
    known = (*TECHNIQUES, *TAGGER_KINDS)
    raise ParameterError(
        f"--technique {name!r} is unknown{nearest(str(name), known)}; allowed: {', '.join(known)}, or with --params a "
        "key of 'masking:'"
    )
