"""Registry of unlearning methods, from this package and from other packages."""

from functools import partial
from typing import TYPE_CHECKING

from tasks.settings.base import any_of, method_named, registered
from tasks.unlearning.method import UnlearningMethod
from tasks.unlearning.methods.continued_training import ContinuedTraining
from tasks.unlearning.methods.contrasting_expert import ContrastingExpert
from tasks.unlearning.methods.inverse_distillation import InverseDistillation
from tasks.unlearning.methods.negative_preference import NegativePreference
from tasks.unlearning.methods.steering import Steering
from tasks.unlearning.methods.task_arithmetic import TaskArithmetic

GROUP = "palimpsest.unlearning_methods"
"""Entry points of other packages: settings classes of unlearning methods."""
_OWN = (
    NegativePreference,
    ContinuedTraining,
    TaskArithmetic,
    Steering,
    ContrastingExpert,
    InverseDistillation,
)
METHODS: dict[str, type[UnlearningMethod]] = registered(GROUP, _OWN)
"""Settings classes by kind, in the order of the help."""
if TYPE_CHECKING:
    AnyUnlearning = UnlearningMethod
else:
    AnyUnlearning = any_of(GROUP, _OWN)
METHODS_HELP = "\n".join(["Methods:", *(f"  {kind:<28}{method.sentence}" for kind, method in METHODS.items())])
settings_named = partial(method_named, METHODS, "unlearning.methods")
"""The settings of a kind by its name; raises ``ParameterError`` for an unknown name."""
