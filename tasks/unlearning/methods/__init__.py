"""The ways to forget: those of this package, and those that others register."""

from typing import TYPE_CHECKING

from tasks.errors import ParameterError
from tasks.settings.base import any_of, registered
from tasks.spelling import nearest
from tasks.unlearning.method import UnlearningMethod
from tasks.unlearning.methods.continued_training import ContinuedTraining
from tasks.unlearning.methods.gradient_difference import GradientDifference
from tasks.unlearning.methods.inverse_distillation import InverseDistillation
from tasks.unlearning.methods.negative_preference import NegativePreference
from tasks.unlearning.methods.overwriting import Overwriting
from tasks.unlearning.methods.private_words import PrivateWords
from tasks.unlearning.methods.simple_negative_preference import SimpleNegativePreference
from tasks.unlearning.methods.task_arithmetic import TaskArithmetic

GROUP = "palimpsest.unlearning_methods"
"""Entry points of other packages: settings classes of ways to forget."""
_OWN = (
    PrivateWords,
    Overwriting,
    ContinuedTraining,
    GradientDifference,
    NegativePreference,
    SimpleNegativePreference,
    TaskArithmetic,
    InverseDistillation,
)
METHODS: dict[str, type[UnlearningMethod]] = registered(GROUP, _OWN)
"""Settings classes by kind, in the order of the help."""
if TYPE_CHECKING:
    AnyUnlearning = UnlearningMethod
else:
    AnyUnlearning = any_of(GROUP, _OWN)
METHODS_HELP = "\n".join(["Methods:", *(f"  {kind:<28}{method.sentence}" for kind, method in METHODS.items())])


def settings_named(name: str | None) -> dict[str, object]:
    """The settings that a name stands for where no parameter file describes it: a kind of method.

    ``ParameterError`` with the nearest spelling where it is none.
    """
    if name in METHODS:
        return {"kind": name}
    raise ParameterError(
        f"--method {name!r} is not known{nearest(str(name), METHODS)}; allowed: {', '.join(METHODS)}, or with --params "
        "a key of 'unlearning.methods:'"
    )
