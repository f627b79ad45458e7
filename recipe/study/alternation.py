"""Decide what comes next when two policies take turns, from what the run's folder holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from recipe.run.errors import ConfigError

Role = Literal["solver", "guide"]
_TURNS = {"turns/acc_t1", "turns/acc_t2", "turns/delta"}
ROLES: tuple[Role, ...] = ("solver", "guide")


class Weights(NamedTuple):
    """A role's weights after so many of its own steps; 0: the base model."""

    role: Role
    step: int

    @property
    def name(self) -> str:
        """Name of their export, and the one they are served under."""
        return f"{self.role}-{self.step}"


class Phase(NamedTuple):
    """Steps in which one role trains, counted in that role's own steps."""

    role: Role
    first: int
    last: int

    @property
    def partner(self) -> Role:
        """The role that is served meanwhile."""
        return "guide" if self.role == "solver" else "solver"


class Export(NamedTuple):
    """Write a role's newest weights as a model folder."""

    weights: Weights


class TrainPhase(NamedTuple):
    """Train the phase's role against its partner's weights, up to the phase's last step."""

    phase: Phase
    served: Weights


class Evaluate(NamedTuple):
    """Evaluate the solver with the guide."""

    model: Weights
    served: Weights


@dataclass(frozen=True)
class Facts:
    """What a folder holds.

    Attributes:
        steps: Step of each role's newest whole checkpoint; 0 where there is none.
        exports: Weights that are there as model folders.
    """

    steps: Mapping[Role, int]
    exports: frozenset[Weights] = frozenset()

    def weights(self, role: Role) -> Weights:
        """Return a role's newest weights."""
        return Weights(role, self.steps[role])

    def stale(self) -> frozenset[Weights]:
        """Return the exports of weights that are no longer a role's newest."""
        return frozenset(each for each in self.exports if each != self.weights(each.role))


def phases(t_low: int, t_high: int, num_steps: int) -> list[Phase]:
    """Return the phases of a run of ``num_steps`` steps of both roles together.

    The solver begins; the last phase ends with the run.

    Raises:
        ConfigError: If one of the roles would never train.
    """
    if t_low < 1 or t_high < 1:
        raise ConfigError(
            f"t_low={t_low} and t_high={t_high} must both be at least 1: the solver's and the "
            f"guide's steps in a row, such as 10 and 10"
        )
    if num_steps <= t_low:
        raise ConfigError(
            f"trainer.total_training_steps={num_steps} counts the steps of both roles together and "
            f"must be above t_low={t_low}: otherwise the guide never trains"
        )
    found, done, lengths = [], dict.fromkeys(ROLES, 0), {"solver": t_low, "guide": t_high}
    while (left := num_steps - sum(done.values())) > 0:
        role = ROLES[len(found) % 2]
        first, done[role] = done[role] + 1, done[role] + min(lengths[role], left)
        found.append(Phase(role, first, done[role]))
    return found


def next_action(
    phases: Sequence[Phase], facts: Facts, *, evaluates: bool = False
) -> Export | TrainPhase | Evaluate | None:
    """Return what comes next; ``None`` when all phases are done and both roles exported.

    Args:
        phases: Of the run.
        facts: Of its folder.
        evaluates: Whether the pair is to be evaluated as it stands, whatever phase comes next.
    """
    ahead = (each for each in phases if facts.steps[each.role] < each.last)
    phase = None if evaluates else next(ahead, None)
    for role in (phase.partner,) if phase else ROLES:
        weights = facts.weights(role)
        if weights.step and weights not in facts.exports:
            return Export(weights)
    if phase:
        return TrainPhase(phase, facts.weights(phase.partner))
    return Evaluate(facts.weights("solver"), facts.weights("guide")) if evaluates else None


def phase_facts(phase: Phase, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a phase's progress and result, from the lines of its ``metrics.jsonl``.

    The role's next phase validates before its first step, against another partner: that line is of
    this phase's last step, and of no training.
    """
    own = (row for row in rows if phase.first <= row["step"] <= phase.last)
    steps = [row for row in own if any(name.startswith("hint/") for name in row)]
    last = steps[-1] if steps else {}
    return {
        **phase._asdict(),
        "step": last.get("step", phase.first - 1),
        "seconds": round(sum(row.get("timing_s/step", 0.0) for row in steps), 1),
        "metrics": {
            name: value
            for name, value in last.items()
            if name.startswith("val-core/") or name in _TURNS
        },
    }
