"""Make the runs of a campaign: ``hint campaign CAMPAIGN.yaml -o DIR [--only ARM]``.

Each run trains, and evaluates its last weights, in DIR/ARM/seed-N. Repeat the command after an
interruption: finished runs stay, others resume from their newest checkpoint or start over. Then
``hint report campaign DIR -o results.md`` makes the page.

If a run fails, the others are still made; the exit code is 2, with one line. A second command at
the same time makes runs that the first has not begun.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field

from recipe import PROGRAMS
from recipe.hint.command import CONFIG_DIR, explain, set_config_paths, translated
from recipe.run.checkpoints import resume_step, step_folder
from recipe.run.children import deferred_signals, run_child
from recipe.run.config import check, override
from recipe.run.ending import Parser, errors_in_one_line
from recipe.run.errors import ConfigError, HintError, one_line, reading
from recipe.run.run_folder import RunFolder
from recipe.run.typed import read_typed, read_yaml
from recipe.run.whole_file import claimed, write_whole
from recipe.study.runs import RUN_FILE

CAMPAIGN_FILE, RESULTS = "campaign.yaml", "evaluation/results.json"
# What is measured of held-out responses, by its name in ``Conversation.facts``, with its title; the
# last two are not facts of it, and runs no longer measure the last.
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
# Without what a training may be given and an evaluation refuses: its weights have the adapter.
_EVALUATES = (
    *("trainer.eval_only=true", "data.val_max_samples=-1"),
    "actor_rollout_ref.model.lora_adapter_path=null",
)
Share = Annotated[float, Field(ge=-1, le=1)]
Seeds = Annotated[tuple[int, ...], Field(min_length=1)]
_ARM = re.compile(r"[^./][^/]*")  # the name of a folder


@dataclass(frozen=True)
class Arm:
    """What sets some runs apart: settings over the campaign's, also for the evaluation; seeds."""

    settings: tuple[str, ...] = ()
    evaluation: tuple[str, ...] = ()
    seeds: Seeds | None = None


@dataclass(frozen=True)
class Claim:
    """A claim about an arm, made before its runs, which they confirm or refute.

    The measure on the held-out problems of a data source is ``at_least`` or ``below`` a share in
    every seed, or over all seeds ``more_than`` another arm's ``by`` a share, which may be negative.
    """

    arm: str
    source: str
    measure: str
    at_least: Share | None = None
    below: Share | None = None
    more_than: str | None = None
    by: Share = 0.0

    def __post_init__(self) -> None:
        if (self.at_least, self.below, self.more_than).count(None) != 2:
            raise ConfigError(f"claim of {self.arm}: give one of at_least, below and more_than")
        if self.measure not in MEASURES:
            raise ConfigError(f"measure={self.measure}; choose from {', '.join(MEASURES)}")


@dataclass(frozen=True)
class Plan:
    """One run to make: an arm with a seed."""

    arm: str
    seed: int
    settings: tuple[str, ...]
    evaluation: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its folder in that of the campaign; beside it, as ``.json``, what was kept of it."""
        return f"{self.arm}/seed-{self.seed}"

    def as_json(self) -> dict[str, list[str]]:
        """Return what makes the run, as it stands in its folder."""
        return {"settings": [*self.settings], "evaluation": [*self.evaluation]}

    def check_made(self, root: Path) -> None:
        """Refuse a folder, or a kept file, of a run with other settings."""
        folder, kept, now = root / self.name, root / f"{self.name}.json", self.as_json()
        made = now
        if (folder / RUN_FILE).exists():
            with reading(folder / RUN_FILE):
                made = {**json.loads((folder / RUN_FILE).read_text("utf-8"))}
            if not (folder / "evaluation").exists():  # nothing depends on the former ones
                made["evaluation"] = now["evaluation"]
        elif kept.exists():
            with reading(kept):
                made = json.loads(kept.read_text("utf-8"))["made"]
        if made != now:
            raise ConfigError(
                f"{folder} was made with {made}, now it is {now}: delete it (or its evaluation "
                f"alone) to make it again, or give another -o"
            )


@dataclass(frozen=True)
class Campaign:
    """Arms x seeds, as docs/campaigns.md has them; with a grid, arms x its settings x seeds."""

    title: str
    arms: Mapping[str, Arm]
    grid: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    evaluation: tuple[str, ...] = ()
    seeds: Seeds = (1, 2, 3)
    reference: str | None = None
    claims: tuple[Claim, ...] = ()

    def __post_init__(self) -> None:
        check(self.arms, "campaign.arms has no arm")
        if self.grid:
            made = {
                f"{name}-{key}": replace(arm, settings=(*arm.settings, *more))
                for name, arm in self.arms.items()
                for key, more in self.grid.items()
            }
            told = f"campaign.grid: of {len(self.arms)} x {len(self.grid)} arms some have one name"
            check(len(made) == len(self.arms) * len(self.grid), told)
            vars(self).update(arms=made, grid={})
        for name in self.arms:
            check(_ARM.fullmatch(name), f"arm {name!r} must be the name of a folder")
            seeds = self.seeds_of(name)
            check(len({*seeds}) == len(seeds), f"arm {name}: seeds={seeds} must differ")
        named = {self.reference, *(n for each in self.claims for n in (each.arm, each.more_than))}
        unknown = named - {None, *self.arms}
        told = f"{', '.join(map(str, unknown))} is not an arm; choose from {', '.join(self.arms)}"
        check(not unknown, told)

    @property
    def compared_with(self) -> str:
        """The arm that the others are compared with."""
        return self.reference or next(iter(self.arms))

    def seeds_of(self, arm: str) -> tuple[int, ...]:
        """Return the seeds of an arm's runs."""
        own = self.arms[arm].seeds
        return self.seeds if own is None else own

    def plans(self, only: Sequence[str] = ()) -> list[Plan]:
        """Return all runs, or those of some arms: every arm's first seed, then its second, ..."""
        if unknown := {*only} - {*self.arms}:
            raise ConfigError(f"--only {min(unknown)}: the arms are {', '.join(self.arms)}")
        found = []
        for name in only or self.arms:
            arm = self.arms[name]
            for seed in self.seeds_of(name):
                settings = (*self.settings, *arm.settings, f"hint.seed={seed}", f"data.seed={seed}")
                found.append(Plan(name, seed, settings, (*self.evaluation, *arm.evaluation)))
        return sorted(found, key=lambda plan: self.seeds_of(plan.arm).index(plan.seed))


def read_campaign(path: str | Path) -> Campaign:
    """Read a campaign's file; a ``ConfigError`` begins with it."""
    try:
        return read_typed(Campaign, read_yaml(Path(path).read_text("utf-8")), "campaign")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {one_line(error, 300)}") from error


def state_of(plan: Plan, root: Path) -> str:
    """Return ``done``, or what comes next, as the run's folder says."""
    plan.check_made(root)
    folder = root / plan.name
    if (folder / RESULTS).is_file() or (root / f"{plan.name}.json").is_file():
        return "done"
    step = resume_step(folder / "checkpoints")
    if not step:
        return "train"
    config = read_yaml((folder / "config.yaml").read_text("utf-8"))
    if step != int(config["trainer"]["total_training_steps"]):
        return f"train after step {step}"
    return "evaluate"


def make(path: Path, root: Path, only: Sequence[str] = ()) -> None:
    """Make every run of a campaign's file that is not done, but for those that others work at.

    Raises:
        ConfigError: If a folder holds a run with other settings, or an arm's cannot be run.
        HintError: At the end, if some failed; ``campaign.log`` in their folders says why.
    """
    campaign = read_campaign(path)
    plans, failed = campaign.plans(only), dict[str, str]()
    for plan in campaign.plans():
        plan.check_made(root)
    for arm, plan in {plan.arm: plan for plan in plans}.items():
        told = f"arm {arm}: trainer.save_freq must be above 0, for weights to evaluate"
        check(re.fullmatch("[1-9][0-9]*", str(_composed(plan).trainer.save_freq)), told)
    root.mkdir(parents=True, exist_ok=True)
    write_whole(root / CAMPAIGN_FILE, path.read_text(encoding="utf-8"))
    left = [plan for plan in plans if state_of(plan, root) != "done"]
    _say(f"{len(plans)} runs, {len(plans) - len(left)} of them done")
    for plan in left:
        try:
            (root / plan.name).mkdir(parents=True, exist_ok=True)
            with claimed(root / plan.name / ".campaign.lock"):
                _make_run(plan, root)
        except (HintError, OSError, ValueError) as error:  # of this run, which ends no other
            failed[plan.name] = one_line(error)
        _say(f"{plan.name}: {failed.get(plan.name, 'done')}")
    if failed:
        shown = ", ".join(f"{name} ({why})" for name, why in failed.items())
        raise HintError(f"{len(failed)} of {len(left)} runs failed: {shown}")


def _composed(plan: Plan) -> Any:
    """Return a run's settings, with those of its evaluation; refuse what Hydra would."""
    set_config_paths()
    given = [*plan.settings, *plan.evaluation]
    try:
        with initialize_config_dir(str(CONFIG_DIR), version_base=None):
            return compose("hint_trainer", overrides=translated(given))
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"arm {plan.arm}: {explain(error, given)}") from error


def _make_run(plan: Plan, root: Path) -> None:
    """Go through the steps of a run, each a process: Ray and verl start once in one."""
    folder, last = (root / plan.name).absolute(), ""
    while (step := state_of(plan, root)) != "done":
        if step == last:
            raise HintError(f"{step}: it left nothing")
        _say(f"{plan.name}: {step}")
        write_whole(folder / RUN_FILE, json.dumps(plan.as_json(), indent=1) + "\n")
        command = [sys.executable, str(PROGRAMS / "main_hint.py"), *plan.settings]
        command.append(override("hint.run_dir", folder))
        if step == "evaluate":
            number = resume_step(folder / "checkpoints") or 0
            checkpoint = step_folder(folder / "checkpoints", number)
            # The training may have been killed between its last checkpoint and that step's line.
            RunFolder(folder).restore_metrics(number, checkpoint)
            weights = override("actor_rollout_ref.model.path", checkpoint)
            command += [*plan.evaluation, *_EVALUATES, weights]
        else:  # what is there is of weights that the run no longer has
            shutil.rmtree(folder / "evaluation", ignore_errors=True)
        with open(folder / "campaign.log", "a") as log, deferred_signals():
            print("$", *command, file=log, flush=True)
            code = run_child(command, log=log)
        if code:
            raise HintError(f"{step}: exit code {code}")
        last = step


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> None:
    parser = Parser(description=__doc__)
    parser.add_argument("campaign", type=Path, help="YAML file, such as configs/campaign/*.yaml")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--only", action="append", default=[], metavar="ARM", help="repeatable")
    parser.add_argument("--dry-run", action="store_true", help="list the runs and what each needs")
    given = parser.parse_args(argv)
    if given.dry_run:
        for plan in read_campaign(given.campaign).plans(given.only):
            print(f"{plan.name}: {state_of(plan, given.output)}: {' '.join(plan.settings)}")
    else:
        make(given.campaign, given.output, given.only)
        print(f"done: hint report campaign {given.output} -o results.md")
