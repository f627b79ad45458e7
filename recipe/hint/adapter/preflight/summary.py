"""What will run, in lines for people, with warnings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.data import Lengths
from recipe.hint.adapter.preflight.model import Model
from recipe.hint.adapter.preflight.settings import PROMPT_LENGTH, setting
from recipe.hint.methods import Method, MultiTurn
from recipe.hint.settings import HintSettings
from recipe.problems.columns import ProblemFile
from recipe.run.paths import VAL
from recipe.study.evaluation.play import evaluated_method


def model_line(path: str, model: Model) -> str:
    """Return where the model is and how large."""
    count = model.num_parameters
    size = "size unknown" if count is None else f"{count / 1e6:,.2f} M parameters"
    return f"model     {path}: {size}, context {model.context} tokens"


def evaluates(config: DictConfig, method: Method) -> str:
    """Return what an evaluation plays."""
    if method.is_multi_turn:
        return f"conversations of {evaluated_method(config)}, scored by their last turn"
    return "without hints"


def plays(method: Method, settings: HintSettings) -> str:
    """Return what a training plays."""
    if method.is_multi_turn:
        return "several turns; validation scores the last"
    if not method.uses_hints:
        return "without hints"
    return f"hint levels up to {method.max_level}, {settings.source}, style {settings.style}"


def lengths_line(
    config: DictConfig, lengths: Lengths, settings: HintSettings, method: Method
) -> str:
    """Return the longest prompt and response, with their limits."""
    longer = "earlier turns" if method.is_multi_turn else "hint"
    limit = f" (limit with {longer} {setting(config, PROMPT_LENGTH)})"
    has_limit = method.uses_hints or method.is_multi_turn
    requests = f", hint requests up to {lengths.longest_request} + {settings.max_tokens}"
    return (
        f"lengths   prompts up to {lengths.longest_prompt}"
        f"{limit if has_limit else ''}, responses up to "
        f"{config.data.max_response_length} tokens{requests if lengths.longest_request else ''}"
    )


def sampling(config: DictConfig, method: Method) -> str:
    """Return how each kind of text is sampled."""
    rollout = config.actor_rollout_ref.rollout
    nodes = {"rollouts": rollout, "hints": config.hint, "validation": rollout.val_kwargs}
    if not method.uses_hints:
        del nodes["hints"]
    parts = "; ".join(f"{who} T={of.temperature} top_p={of.top_p}" for who, of in nodes.items())
    return f"{parts} x {rollout.val_kwargs.n} samples"


def devices(config: DictConfig) -> str:
    """Return the devices of the trainer."""
    trainer = config.trainer
    return f"devices   {trainer.nnodes} x {trainer.n_gpus_per_node} {trainer.device}"


def oracles(method: Method) -> list[str]:
    """Return a warning for each setting that makes accuracies those of policy and verifier."""
    names = method.verdict_dependent_settings if isinstance(method, MultiTurn) else ()
    return [
        f"warning: {method.settings_node}.{name}=true: later turns know the verdict on earlier "
        f"ones, in validations and evaluations too; their accuracy is not the policy's alone"
        for name in names
    ]


def trained_on(train: Sequence[ProblemFile], val: Sequence[ProblemFile]) -> list[str]:
    """Return a warning for each validation file that the run trains on."""
    trained = {Path(file.path).resolve() for file in train}
    return [
        f"warning: {VAL} has {file.path}, which the run trains on: its accuracy says nothing about "
        f"other problems"
        for file in val
        if Path(file.path).resolve() in trained
    ]
