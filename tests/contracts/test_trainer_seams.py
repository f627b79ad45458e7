"""The hooks of verl's trainers that HintMixin stands on."""

import ast
import inspect
import textwrap
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from omegaconf import OmegaConf
from transfer_queue import interface
from transfer_queue.storage.bootstrap import simple_storage_bootstrap
from verl.trainer.ppo.v1 import PPOTrainer
from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
from verl.utils import tensordict_utils as tu
from verl.utils.checkpoint.checkpoint_manager import find_latest_ckpt_path

from recipe.hint.hint_trainer import TRAINERS, HintMixin
from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.schema import ProblemState
from recipe.run.checkpoints import (
    STATE_FILE,
    mark_complete,
    repair_pointer,
    step_folder,
)

# What HintMixin overrides; the rest of its methods are its own.
HOOKS = {
    "__init__",
    "_build_replay_buffer",
    "_fetch_one_gen_batch",
    "_load_checkpoint",
    "_save_checkpoint",
    "_setup",
    "_step_once",
    "_val_metrics_update",
    "on_init_end",
    "fit",
    "on_sample_end",
    "on_step_end",
    "step",
}
OWN = {"_read", "logger"}
MODES = pytest.mark.parametrize("mode", sorted(TRAINERS))


def names_and_kinds(function):
    return [(each.name, each.kind) for each in inspect.signature(function).parameters.values()]


def names_in(function) -> set[str]:
    return set(function.__code__.co_names)


def test_every_mode_of_verl_has_a_trainer_of_ours():
    assert set(TRAINERS) == set(TRAINER_REGISTRY)


def test_the_actors_of_the_queue_have_the_names_that_we_ask_for():
    for function, name in (
        (interface.init, 'name="TransferQueueController", namespace="transfer_queue"'),
        (simple_storage_bootstrap, '"name": f"TransferQueueStorageUnit#{storage_unit_rank}"'),
    ):
        assert name in inspect.getsource(function)


@MODES
def test_our_trainer_is_verls_trainer_of_that_mode_behind_our_hooks(mode):
    cls = TRAINERS[mode]
    assert issubclass(cls, TRAINER_REGISTRY[mode])
    assert cls.__mro__[1] is HintMixin  # so that its hooks win over those of the mode


def test_our_mixin_overrides_nothing_else():
    defined = {name for name in vars(HintMixin) if name in HOOKS or not name.startswith("__")}
    assert defined == HOOKS | OWN
    assert [name for name in OWN if hasattr(PPOTrainer, name)] == []


@MODES
@pytest.mark.parametrize("name", sorted(HOOKS))
def test_every_hook_exists_in_verl_with_our_parameters(mode, name):
    theirs = getattr(TRAINER_REGISTRY[mode], name)
    assert names_and_kinds(getattr(HintMixin, name)) == names_and_kinds(theirs)


def test_a_prompt_that_failed_in_a_validation_counts_for_nothing():
    """Of three prompts of 2 samples one failed: 3 of 4 right. verl's own count would be 3 of 6."""
    expected, infos = {("aime", uid): 2 for uid in "abc"}, {"acc": [1.0, 1.0, 1.0, 0.0]}
    trainer = object.__new__(TRAINERS["sync"])
    found = trainer._val_metrics_update(["aime"] * 4, [*"aabb"], infos, [], expected)
    assert found["val-core/aime/acc/mean@2"] == 0.75


def test_verl_calls_each_hook_where_we_expect_it():
    assert {"_setup", "on_init_end"} <= names_in(PPOTrainer.init)
    assert "_build_replay_buffer" in names_in(PPOTrainer.__init__)
    assert {"step", "_save_checkpoint", "on_step_end"} <= names_in(PPOTrainer.fit)
    assert "_step_once" in names_in(PPOTrainer.step)
    assert "on_sample_end" in names_in(PPOTrainer._step_once)
    assert "_load_checkpoint" in names_in(PPOTrainer._setup)
    calls = textwrap.dedent(inspect.getsource(PPOTrainer._next_train_batch))
    assert "self._fetch_one_gen_batch()" in calls
    assert "for batch_dict in self.val_dataloader:" in inspect.getsource(PPOTrainer._validate)


def test_the_trainer_keeps_its_tracking_in_the_attribute_that_we_replace():
    tree = ast.parse(textwrap.dedent(inspect.getsource(PPOTrainer.fit)))
    assigned = [
        target.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    ]
    assert assigned.count("logger") == 1


# -- submit ---------------------------------------------------------------------------------------


def test_a_problem_that_a_step_holds_twice_is_sampled_with_other_seeds_the_second_time(monkeypatch):
    """The end of an epoch and the beginning of the next may meet in one step."""

    def batch_of(*names):
        return tu.get_tensordict(
            {
                "raw_prompt": [[{"role": "user", "content": name}] for name in names],
                "reward_model": [{"ground_truth": "1"} for _ in names],
                "extra_info": [{"index": name} for name in names],
                "uid": [f"uid-{name}" for name in names],
            }
        )

    batches = iter([batch_of("a", "b"), batch_of("b", "a", "c"), batch_of("a")])
    monkeypatch.setattr(PPOTrainer, "_fetch_one_gen_batch", lambda self: next(batches))
    trainer = TRAINERS["sync"].__new__(TRAINERS["sync"])
    trainer.tracker, trainer._sent_step = RewardTracker(), -1
    trainer.watchdog = SimpleNamespace(phase=lambda *_: nullcontext())
    trainer.replay_buffer = SimpleNamespace(in_order=lambda step, uids: list(uids))

    def repeats(step):
        trainer.global_steps = step
        states = trainer._fetch_one_gen_batch()["hint_state_of_problem"]
        states = [tu.unwrap_non_tensor_data(state) for state in states]
        # What a queue keeps, for a run that is resumed at another step.
        assert {ProblemState(**{**state, "step": 7}).sent_step for state in states} == {step}
        return [state["repeat"] for state in states]

    assert [repeats(1), repeats(1), repeats(2)] == [[0, 0], [1, 1, 0], [0]]


# -- checkpoints ----------------------------------------------------------------------------------


def test_verl_finds_the_checkpoint_that_we_point_at(tmp_path):
    for step in (7, 11):
        step_folder(tmp_path, step).mkdir()
    mark_complete(tmp_path, 7)
    repair_pointer(tmp_path)
    assert find_latest_ckpt_path(str(tmp_path)) == str(tmp_path / "global_step_7")


@pytest.mark.parametrize("is_own", [True, False])
def test_a_run_that_was_set_back_by_path_goes_on_from_there_whatever_was_saved_later(
    tmp_path, monkeypatch, is_own
):
    """Its records after that step are dropped: a later checkpoint has none for its steps."""
    source = tmp_path / "checkpoints" if is_own else tmp_path / "other"
    for root in {tmp_path / "checkpoints", source}:
        for step in (2, 4):
            step_folder(root, step).mkdir(parents=True)
            np.savez(step_folder(root, step) / STATE_FILE, **RewardTracker().state_dict())
            mark_complete(root, step)
    monkeypatch.setattr(PPOTrainer, "_load_checkpoint", lambda self: None)
    trainer = TRAINERS["sync"].__new__(TRAINERS["sync"])
    trainer.trainer_mode, trainer.global_steps = "sync", 2
    trainer.tracker, trainer.folder = RewardTracker(), SimpleNamespace(say=str)
    node = {
        "resume_mode": "resume_path",
        "resume_from_path": str(step_folder(source, 2)),
        "default_local_dir": str(tmp_path / "checkpoints"),
    }
    trainer.config = OmegaConf.create({"trainer": node})
    trainer._load_checkpoint()
    assert repair_pointer(tmp_path / "checkpoints") == (2 if is_own else 4)
