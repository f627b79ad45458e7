"""Register the methods: the only place where a method's name has a meaning.

A method's file is imported when the method is asked for.
"""

from importlib.metadata import EntryPoint, entry_points

from recipe.hint.methods.base import Method
from recipe.run.errors import ConfigError

# Other packages declare methods of their own as entry points of this group.
ENTRY_POINTS = "hint.methods"
# Where a method is, as in an entry point. The first one is the baseline, which evaluations use.
METHODS = {
    "grpo": "recipe.hint.methods.grpo:Grpo",
    "sage": "recipe.hint.methods.sage:Sage",
    "sage-light": "recipe.hint.methods.sage_light:SageLight",
    "fixed": "recipe.hint.methods.fixed:Fixed",
    "ghpo": "recipe.hint.methods.ghpo:Ghpo",
    "scaf": "recipe.hint.methods.scaf:Scaf",
    "luffy": "recipe.hint.methods.luffy:Luffy",
    "sft": "recipe.hint.methods.sft:Sft",
    "score": "recipe.hint.methods.score:Score",
    "score-guided": "recipe.hint.methods.score_guided:ScoreGuided",
    "mlmt": "recipe.hint.methods.mlmt:Mlmt",
    "archer": "recipe.hint.methods.archer:Archer",
}
BASELINE = next(iter(METHODS))
# Released by the authors of SAGE; benchmarks measure these by default.
RELEASED = ("sage", "sage-light")


def declared_methods() -> dict[str, str]:
    """Return where methods of other installed packages are, by ``trainer.method``.

    Raises:
        ConfigError: If a name is taken.
    """
    found = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    if taken := sorted(found.keys() & METHODS.keys()):
        raise ConfigError(
            f"the entry point {taken[0]} of {ENTRY_POINTS} has the name of a method; choose another"
        )
    return found


METHODS |= declared_methods()


def get_method(name: str) -> type[Method]:
    """Return the method class of a ``trainer.method`` value.

    Raises:
        ConfigError: If there is none of that name, or what has the name is no method.
    """
    if name not in METHODS:
        raise ConfigError(
            f"trainer.method={name!r} is not a method; choose one of {', '.join(sorted(METHODS))}, "
            f"or declare it in a package of your own (docs/new_method.md)"
        )
    cls = EntryPoint(name, METHODS[name], ENTRY_POINTS).load()
    if not (isinstance(cls, type) and issubclass(cls, Method)):
        raise ConfigError(
            f"the entry point {name} of {ENTRY_POINTS} is {cls!r}; expected a subclass of Method"
        )
    return cls


def every_method() -> dict[str, type[Method]]:
    """Return all method classes by ``trainer.method``."""
    return {name: get_method(name) for name in METHODS}
