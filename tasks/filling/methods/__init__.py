"""The filling methods of this package and of packages that register them (paper 3.2)."""

from functools import partial
from typing import TYPE_CHECKING

from tasks.filling.methods.distilled import Distilled
from tasks.filling.methods.free import Free
from tasks.filling.methods.log_linear import LogLinear
from tasks.filling.methods.sample import Sample
from tasks.filling.methods.surrogate import Surrogate
from tasks.filling.methods.top_1 import Top1
from tasks.filling.methods.top_k import TopK
from tasks.filling.methods.unigram import Unigram
from tasks.filling.settings import FillingMethod
from tasks.settings.base import any_of, method_named, registered

GROUP = "palimpsest.filling_methods"
"""Group of entry points of other packages: settings classes of filling methods."""
_OWN = (Top1, TopK, Sample, LogLinear, Free, Unigram, Surrogate, Distilled)
METHODS: dict[str, type[FillingMethod]] = registered(GROUP, _OWN)
"""Settings classes by kind, in the order of the help."""
if TYPE_CHECKING:
    AnyMethod = FillingMethod
else:
    AnyMethod = any_of(GROUP, _OWN)
METHODS_HELP = "\n".join(["Methods:", *(f"  {kind:<12}{method.sentence}" for kind, method in METHODS.items())])
settings_named = partial(method_named, METHODS, "filling")
"""Settings of a method by its kind. Raises ``ParameterError`` for an unknown kind."""
