"""Register the methods: the only place where a method's name has a meaning."""

from importlib.metadata import entry_points

from recipe.hint.methods.archer import Archer
from recipe.hint.methods.base import Method
from recipe.hint.methods.base import MethodSettings as MethodSettings
from recipe.hint.methods.fixed import Fixed
from recipe.hint.methods.ghpo import Ghpo
from recipe.hint.methods.grpo import Grpo
from recipe.hint.methods.luffy import Luffy
from recipe.hint.methods.mlmt import Mlmt
from recipe.hint.methods.sage import Sage
from recipe.hint.methods.sage_light import SageLight
from recipe.hint.methods.scaf import Scaf
from recipe.hint.methods.score import Score
from recipe.hint.methods.score_guided import ScoreGuided
from recipe.hint.methods.sft import Sft
from recipe.run.errors import ConfigError

# The first one is the baseline, which benchmarks compare with and evaluations use.
METHODS: dict[str, type[Method]] = {
    "grpo": Grpo,
    "sage": Sage,
    "sage-light": SageLight,
    "fixed": Fixed,
    "ghpo": Ghpo,
    "scaf": Scaf,
    "luffy": Luffy,
    "sft": Sft,
    "score": Score,
    "score-guided": ScoreGuided,
    "mlmt": Mlmt,
    "archer": Archer,
}

BASELINE = next(iter(METHODS))
# Other packages declare methods of their own as entry points of this group.
ENTRY_POINTS = "hint.methods"
# Released by the authors of SAGE; benchmarks measure these by default.
RELEASED = ("sage", "sage-light")


def _declared_methods() -> dict[str, type[Method]]:
    """Return the methods that other installed packages declare, by ``trainer.method``.

    Raises:
        ConfigError: If one is not a method, or has a name that is taken.
    """
    found = {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}
    for name, cls in found.items():
        if name in METHODS or not (isinstance(cls, type) and issubclass(cls, Method)):
            raise ConfigError(
                f"the entry point {name} of {ENTRY_POINTS} is {cls!r}; expected a subclass of "
                f"Method, under a name that is not taken"
            )
    return found


METHODS |= _declared_methods()


def get_method(name: str) -> type[Method]:
    """Return the method class of a ``trainer.method`` value.

    Raises:
        ConfigError: If there is none of that name.
    """
    if name not in METHODS:
        raise ConfigError(
            f"trainer.method={name!r} is not a method; choose one of {', '.join(sorted(METHODS))}, "
            f"or declare it in a package of your own (docs/new_method.md)"
        )
    return METHODS[name]
