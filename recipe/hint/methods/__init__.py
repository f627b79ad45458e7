"""Register the methods: the only place where a method's name has a meaning."""

from importlib.metadata import entry_points

from recipe.hint.methods.archer import Archer
from recipe.hint.methods.base import Method, MethodSettings
from recipe.hint.methods.fixed import Fixed
from recipe.hint.methods.ghpo import Ghpo
from recipe.hint.methods.grpo import Grpo
from recipe.hint.methods.luffy import Luffy
from recipe.hint.methods.mlmt import Mlmt
from recipe.hint.methods.multi_turn import MultiTurn
from recipe.hint.methods.own_credit import OwnCredit
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
# Of earlier versions; another package may declare a method of such a name.
REMOVED = ("rl-zvp", "seele", "prefix-rl")
# Other packages declare methods of their own as entry points of this group.
ENTRY_POINTS = "hint.methods"
# Released by the authors of SAGE; benchmarks measure these by default.
RELEASED = ("sage", "sage-light")


def _declared_methods() -> dict[str, type[Method]]:
    """Return the methods that other installed packages declare, by ``trainer.method``.

    Raises:
        ConfigError: If one cannot be imported, is not a method, or has a name that is taken.
    """
    found: dict[str, type[Method]] = {}
    for point in entry_points(group=ENTRY_POINTS):
        what = f"the entry point {point.name} = {point.value} of {ENTRY_POINTS}"
        try:
            cls = point.load()
        except Exception as error:
            raise ConfigError(f"{what} cannot be imported: {error!r}; repair it") from error
        if not (isinstance(cls, type) and issubclass(cls, Method)):
            raise ConfigError(f"{what} is {cls!r}; expected a subclass of Method")
        if point.name in METHODS or point.name in found:
            raise ConfigError(f"{what}: the name is taken; choose another")
        found[point.name] = cls
    return found


METHODS |= _declared_methods()


def get_method(name: str) -> type[Method]:
    """Return the method class of a ``trainer.method`` value.

    Raises:
        ConfigError: If there is none of that name, or it has to derive from another class.
    """
    if name in REMOVED and name not in METHODS:
        raise ConfigError(
            f"trainer.method={name} was removed; choose another method, or declare it in a package "
            f"of your own (docs/new_method.md)"
        )
    if name not in METHODS:
        raise ConfigError(
            f"trainer.method={name!r} is not a method; choose one of {', '.join(sorted(METHODS))}"
        )
    cls = METHODS[name]
    for says, what, base in (
        (cls.has_own_credit, "has_own_credit", OwnCredit),
        (cls.is_multi_turn, "is_multi_turn", MultiTurn),
    ):
        if says != issubclass(cls, base):
            derive = f"derive it from {base.__module__}.{base.__name__}, and " if says else ""
            raise ConfigError(
                f"trainer.method={name}: {cls.__module__}.{cls.__name__} has {what}={says}, which "
                f"{base.__name__} sets; {derive}leave {what} out"
            )
    own = cls.settings_cls
    if not issubclass(own, MethodSettings) and {"unread", "guide", "solver"} & {*dir(own)}:
        raise ConfigError(
            f"trainer.method={name}: {own.__module__}.{own.__name__} has settings whose use "
            f"depends on others; derive it from {MethodSettings.__module__}.MethodSettings"
        )
    return cls
