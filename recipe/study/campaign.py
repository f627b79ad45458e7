"""Read a campaign from one YAML file: arms x seeds, each a run in its own folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recipe.run.errors import ConfigError, one_line
from recipe.run.typed import read_typed

CAMPAIGN_FILE, RUN_FILE = "campaign.yaml", "campaign.json"
EVALUATION = "evaluation"  # its folder, in a run's
RESULTS = Path(EVALUATION, "results.json")
MODEL_FOLDER = "model"  # the weights of the last step
# What is measured of a response, by its name in ``Conversation.facts``, with its title; the last
# two are not facts of it.
MEASURES = {
    "acc_t1": "turn 1",
    "acc_t2": "last turn",
    "delta": "delta",
    "wrong_to_right": "wrong > right",
    "right_to_wrong": "right > wrong",
    "unchanged": "unchanged",
    "accuracy": "accuracy",
    "work": "work right",
}
DIFFERENCES = {"delta"}
_NAME = re.compile(r"[a-zA-Z0-9][\w.-]*", re.ASCII)
_NAME_CHARS = 64
# The campaign gives these itself.
_OWN = {"hint.run_dir", "trainer.experiment_name", "hint.seed", "data.seed", "trainer.eval_only"}


@dataclass(frozen=True)
class Arm:
    """One arm: what sets its runs apart from those of the others.

    Attributes:
        settings: Laid over the campaign's.
        evaluation: Laid over the campaign's own for the evaluation.
        seeds: ``None``: the campaign's.
    """

    settings: tuple[str, ...] = ()
    evaluation: tuple[str, ...] = ()
    seeds: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Claim:
    """A claim about an arm, made before its runs, which they confirm or refute.

    Attributes:
        arm: The arm that it is about.
        source: Data source of the held-out problems.
        measure: One of ``MEASURES``.
        at_least: The measure is no lower than this, in every seed.
        below: The measure is lower than this, in every seed.
        more_than: The measure is higher than that of this arm, over all seeds.
        by: By more than this; a negative share is what the claim forgives.
    """

    arm: str
    source: str
    measure: str
    at_least: float | None = None
    below: float | None = None
    more_than: str | None = None
    by: float = 0.0

    def __post_init__(self) -> None:
        given = [each for each in (self.at_least, self.below, self.more_than) if each is not None]
        if len(given) != 1:
            raise ConfigError(
                f"a claim about {self.arm} on {self.source} has {len(given)} of at_least, below "
                f"and more_than; give exactly one"
            )
        if self.more_than == self.arm:
            raise ConfigError(
                f"a claim compares {self.arm} with itself on {self.source}; name another arm"
            )
        if self.measure not in MEASURES:
            raise ConfigError(
                f"a claim about {self.arm} on {self.source} has measure={self.measure}; choose "
                f"from {', '.join(MEASURES)}"
            )
        lowest = -1.0 if self.measure in DIFFERENCES else 0.0
        for bound in (self.at_least, self.below):
            if bound is not None and not lowest <= bound <= 1.0:
                raise ConfigError(
                    f"a claim about {self.arm} on {self.source} has {self.measure} at {bound:g}; "
                    f"give a share from {lowest:g} to 1, not per cent"
                )
        if not -1.0 < self.by < 1.0 or (self.by and self.more_than is None):
            raise ConfigError(
                f"a claim about {self.arm} on {self.source} has by={self.by:g}; give a share above "
                f"-1 and below 1, not per cent, beside more_than"
            )


@dataclass(frozen=True)
class Budget:
    """A limit, set before the runs, of what an arm's sampling costs.

    Attributes:
        arm: The arm that it is about.
        tokens_of: The arm whose runs are the measure.
        at_most: Tokens sampled by a run, as a multiple of those of ``tokens_of`` with its seed.
    """

    arm: str
    tokens_of: str
    at_most: float

    def __post_init__(self) -> None:
        if self.tokens_of == self.arm:
            raise ConfigError(f"a budget compares {self.arm} with itself; name another arm")
        if self.at_most <= 0:
            raise ConfigError(
                f"a budget of {self.arm} has at_most={self.at_most:g}; give a factor above 0"
            )


@dataclass(frozen=True)
class Run:
    """One run: an arm with a seed."""

    arm: str
    seed: int
    settings: tuple[str, ...]
    evaluation: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its folder in that of the campaign."""
        return f"{self.arm}/seed-{self.seed}"

    def as_json(self) -> dict[str, Any]:
        """Return what makes the run, as it stands in its folder."""
        return {"settings": list(self.settings), "evaluation": list(self.evaluation)}

    def check_made(self, folder: Path) -> None:
        """Refuse a folder that holds another run.

        Raises:
            ConfigError: If it was made with other settings (naming them), or has results that the
                campaign did not make.
        """
        path, kept = folder / RUN_FILE, kept_file(folder)
        if not path.exists() and (folder / RESULTS).exists():
            raise ConfigError(
                f"{folder} has results and no {RUN_FILE}: it is not a run of this campaign; "
                f"move it away"
            )
        if path.exists():
            made = _read_made(path)
            drawn = folder / EVALUATION
            if isinstance(made, dict) and not drawn.exists():
                made |= {"evaluation": list(self.evaluation)}  # nothing depends on the former ones
            self._check_same(made, folder)
        elif kept.exists():
            made = _read_made(kept)
            self._check_same(made.get("made") if isinstance(made, dict) else made, kept)

    def _check_same(self, made: Any, place: Path) -> None:
        if made != self.as_json():
            was, now = _difference(made, self.as_json())
            is_trained_so = isinstance(made, dict) and made.get("settings") == [*self.settings]
            drawn = place / EVALUATION
            again = (
                f"delete {drawn} to evaluate again"
                if is_trained_so and drawn.exists()
                else "delete it to make the run again"
            )
            raise ConfigError(
                f"{place} was made with {was}, now it is {now}: {again}, or give another -o"
            )


def _difference(made: Any, now: Any) -> list[str]:
    """Return the lines of each of two JSON values, as text, that the other lacks."""
    texts = [json.dumps(each, indent=0).replace('"', "").split("\n") for each in (made, now)]
    lines = [[line.rstrip(",") for line in text] for text in texts]
    return [
        ", ".join(line for line in lines[mine] if line not in lines[1 - mine]) or "the same lines"
        for mine in (0, 1)
    ]


def _read_made(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read ({error}); delete it") from error


def kept_file(folder: Path) -> Path:
    """Return where the kept data of a run is: beside its folder's place."""
    return folder.with_name(f"{folder.name}.json")


def run_name(folder: Path) -> str:
    """Return what a run's folder is called: ``ARM/seed-N`` in a campaign, else its own name."""
    folder = folder.resolve()
    return f"{folder.parent.name}/{folder.name}" if (folder / RUN_FILE).exists() else folder.name


@dataclass(frozen=True)
class Campaign:
    """Arms x seeds.

    Attributes:
        title: For the page of results.
        arms: Name -> arm; the names are folders.
        settings: Of every run, as on the command line of ``main_hint.py``.
        evaluation: Laid over a run's settings when the weights of its last step are evaluated.
        seeds: ``hint.seed`` and ``data.seed`` of the runs of each arm.
        reference: The arm that the others are compared with; ``None``: the first.
        claims: What the runs are to show.
        budgets: What they may cost.
    """

    title: str
    arms: Mapping[str, Arm]
    settings: tuple[str, ...] = ()
    evaluation: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1, 2, 3)
    reference: str | None = None
    claims: tuple[Claim, ...] = ()
    budgets: tuple[Budget, ...] = ()

    def __post_init__(self) -> None:
        if not self.arms:
            raise ConfigError("arms is empty; name at least one arm")
        for name, arm in self.arms.items():
            self._check_arm(name, arm)
        by_folder: dict[str, str] = {}
        for name in self.arms:
            if (other := by_folder.setdefault(name.lower(), name)) != name:
                raise ConfigError(
                    f"arms: {other} and {name} differ in their case alone, as folders may not; "
                    f"rename one"
                )
        named: list[tuple[str, str | None]] = [("reference", self.reference)]
        for number, claim in enumerate(self.claims):
            named += [(f"claims[{number}]", name) for name in (claim.arm, claim.more_than)]
        for number, budget in enumerate(self.budgets):
            named += [(f"budgets[{number}]", name) for name in (budget.arm, budget.tokens_of)]
        for place, name in named:
            if name is not None and name not in self.arms:
                raise ConfigError(
                    f"{place}: {name!r} is not an arm; choose from {', '.join(self.arms)}"
                )

    def _check_arm(self, name: str, arm: Arm) -> None:
        if not _NAME.fullmatch(name) or len(name) > _NAME_CHARS:
            raise ConfigError(
                f"arms: {name[:99]!r} names a folder; give letters, digits, '.', '-' and '_', at "
                f"most {_NAME_CHARS}"
            )
        seeds = self.seeds if arm.seeds is None else arm.seeds
        if not seeds or len(set(seeds)) < len(seeds):
            raise ConfigError(f"seeds of {name} are {list(seeds)}; give each of them once")
        if min(seeds) < 0 or max(seeds) >= 2**31:
            raise ConfigError(f"seeds of {name} are {list(seeds)}; give 0 to {2**31 - 1}")
        for setting in (*self.settings, *self.evaluation, *arm.settings, *arm.evaluation):
            key = setting.partition("=")[0].strip().lstrip("+")
            if "=" not in setting or key in _OWN:
                raise ConfigError(
                    f"{setting!r} (arm {name}) must be NAME=VALUE, and none of "
                    f"{', '.join(sorted(_OWN))}, which the campaign gives each run"
                )

    @property
    def compared_with(self) -> str:
        """The arm that the others are compared with."""
        return self.reference or next(iter(self.arms))

    def runs(self) -> list[Run]:
        """Return all runs: the first seed of every arm, then the second, and so on."""
        found = []
        for name, arm in self.arms.items():
            for place, seed in enumerate(self.seeds if arm.seeds is None else arm.seeds):
                seeded = (f"hint.seed={seed}", f"data.seed={seed}")
                run = Run(
                    name,
                    seed,
                    (*self.settings, *arm.settings, *seeded),
                    (*self.evaluation, *arm.evaluation),
                )
                found.append((place, run))
        return [run for _, run in sorted(found, key=lambda each: each[0])]


class _Once(yaml.SafeLoader):
    """Reads plain values; a key appears once in its mapping, and is a string."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping.

        Raises:
            ValueError: If a key appears twice, or is not a string.
        """
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r} is not a string; quote it")
            if keys.count(key) > 1:
                raise ValueError(f"the key {key!r} appears twice; rename or merge")
        return super().construct_mapping(node, deep)


def read_campaign(path: str | Path) -> Campaign:
    """Read a campaign's file.

    Raises:
        ConfigError: If it is not there, not YAML, or not a campaign; the message begins with it.
    """
    try:
        # Not `safe_load`: of two arms with one name it drops the first.
        node = yaml.load(Path(path).read_text(encoding="utf-8"), _Once)  # noqa: S506
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {one_line(error, 200)}") from error
    if not isinstance(node, dict):
        raise ConfigError(f"{path} holds a {type(node).__name__}, expected a campaign (a mapping)")
    try:
        return read_typed(Campaign, node, "campaign")
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
