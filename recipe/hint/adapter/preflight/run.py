"""Find in seconds what is known to fail in a training, before any process is started.

``preflight`` reads from top to bottom in the order of the checks: settings (``settings.py``), the
machine, the folder, then model and files (``inputs.py``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict

from recipe.hint.adapter.models import ask_for_models, choose_attention
from recipe.hint.adapter.preflight import inputs
from recipe.hint.adapter.preflight.memory import device_memory, memory_lines
from recipe.hint.adapter.preflight.settings import (
    Sizes,
    check_method,
    check_sizes,
    check_values,
    read_sizes,
)
from recipe.hint.adapter.rewards import grade_options, overlong_of
from recipe.hint.command import given_settings
from recipe.hint.methods import Method
from recipe.hint.settings import (
    HintSettings,
    build_method,
    read_settings,
    read_texts,
    unread_settings,
)
from recipe.problems.columns import ProblemFile
from recipe.run.config import FUNCTION, PROMPT_LENGTH, check, setting
from recipe.run.devices import check_machine
from recipe.run.errors import ConfigError, VerifierError
from recipe.run.paths import TRAIN, VAL
from recipe.run.resume import check_folder, check_run_folder, check_same_run, resumed_step
from recipe.verify.pool import VerifierPool


def preflight(config: DictConfig, argv: Sequence[str]) -> list[str]:
    """Check a run's settings, machine, data and model; return what will run, and warnings.

    Nothing is written. ``trainer.total_training_steps`` is set to the steps that there will be:
    verl would end at the last epoch without its last save. Overrides in ``argv`` without effect are
    named in a warning.
    """
    if setting(config, "trainer.val_only"):  # verl would train where it does not validate first
        config.trainer.val_before_train = True
    given, (config, settings) = config, resolved(config)
    method = build_method(config.trainer, settings)
    settings = replace(
        settings, source=settings.source or method.source, style=settings.style or method.style
    )
    warnings = check_teacher(config, method, settings)
    inputs.check_given(config, (TRAIN, VAL, inputs.MODEL))
    check_values(config)
    sizes, texts = read_sizes(config), read_texts(settings)
    # A copy: these settings are the trainer's own, and a resumed run is compared by what was given.
    with_models = config.copy()
    ask_for_models(with_models, method)
    choose_attention(with_models)
    check_sizes(with_models, sizes)
    check_method(config, method, sizes)
    options = given_settings(argv)
    if idle := unread_settings(config.trainer.method, options, settings):
        told = ", ".join(f"{name}={options[name]}" for name in idle)
        warnings.append(f"without effect in this run: {told}")
    check_reward(config, settings)
    check_machine(config)
    folder = check_run_folder(config)

    train, val = inputs.read_files(config, TRAIN), inputs.read_files(config, VAL, by_source=True)
    model = inputs.load_model(config)
    hints = (settings, texts) if method.uses_hints else None
    lengths = inputs.check_lengths(config, model, train=train, val=val, hints=hints)
    inputs.check_turns(config, method, model, lengths, val[0])
    inputs.check_rows(config, method, model, train)

    steps, epochs = _count_steps(config, train, lengths)
    method.check_steps(steps)
    with open_dict(given):
        given.trainer.total_training_steps = config.trainer.total_training_steps = steps
    check_same_run(config)
    trainer = config.trainer
    memory, small = memory_lines(with_models, model.config, device_memory(trainer.device))
    warnings += [*lengths.warnings, *small]
    plays = "without hints"
    if method.is_multi_turn:
        plays = "several turns; validation scores the last"
    elif method.uses_hints:
        plays = f"hint levels up to {method.max_level}, {settings.source}, style {settings.style}"
    return [
        f"method    {config.trainer.method}, {plays}",
        f"model     {model.path}, context {model.context} tokens",
        *(f"train     {file.summary()}" for file in train),
        *(f"validate  {file.summary()}" for file in val),
        f"batch     {sizes.batch} prompts x {sizes.group} rollouts, mini-batches of "
        f"{sizes.mini} prompts, {steps} steps ({epochs:.1f} epochs)",
        lengths_line(config, lengths),
        tokens_line(config, method, settings, sizes),
        *memory,
        f"devices   {trainer.nnodes} x {trainer.n_gpus_per_node} {trainer.device}, trainer mode "
        f"{trainer.v1.trainer_mode}",
        f"folder    {settings.run_dir} ({folder})",
        *(f"warning: {line}" for line in warnings),
    ]


def resolved(config: DictConfig) -> tuple[DictConfig, HintSettings]:
    """Return the configuration without interpolations, and its typed ``hint:`` settings."""
    node: Any = OmegaConf.to_container(config, resolve=True)
    return DictConfig(node), read_settings(node["hint"])


def check_reward(config: DictConfig, settings: HintSettings) -> None:
    """Check the over-long penalty, and load the user's own reward function as the run will."""
    overlong_of(config)
    options = grade_options(settings.verify, config)
    if not options.function_path:
        return
    with VerifierPool(options=options) as pool:
        try:
            pool.check()
        except VerifierError as problem:
            raise ConfigError(f"{FUNCTION}.path={options.function_path}: {problem}") from problem


def check_teacher(config: DictConfig, method: Method, settings: HintSettings) -> list[str]:
    """Check the teacher, if the method asks it for turns or for hints; return warnings."""
    gives_hints = method.uses_hints and (settings.source or method.source) == "teacher"
    if not (method.settings.asks_teacher or gives_hints):
        return []
    check_folder("hint.teacher.cache_dir", settings.teacher.cache_dir)
    from recipe.hint.hints import teacher  # its cache's sqlite3

    is_elsewhere = bool(setting(config, "preflight_only"))
    warning = teacher.check_teacher(settings.teacher, os.environ, is_elsewhere=is_elsewhere)
    return [warning] if warning else []


def _count_steps(
    config: DictConfig, train: Sequence[ProblemFile], lengths: inputs.Lengths
) -> tuple[int, float]:
    """Return the steps that there will be, and how many epochs they are."""
    batch, cap = config.data.train_batch_size, setting(config, "data.train_max_samples") or -1
    total = sum(len(file.problems) for file in train) - lengths.num_dropped
    total = min(total, cap) if cap > 0 else total
    told = f"data.train_batch_size={batch} is above the {total} training problems"
    check(total >= batch, f"{told} of {TRAIN}, so no batch would be full; give {total} or less")
    by_epochs = total // batch * setting(config, "trainer.total_epochs")
    steps = min(by_epochs, setting(config, "trainer.total_training_steps") or by_epochs)
    resumed = resumed_step(config)
    told = f"trainer.total_training_steps={steps}, and the run would resume after step {resumed}"
    check(resumed <= steps, f"{told}; give more steps")
    return steps, steps * batch / total


def lengths_line(config: DictConfig, lengths: inputs.Lengths) -> str:
    """Return the longest prompt and response, with their limits."""
    return (
        f"lengths   prompts up to {lengths.longest_prompt} ({PROMPT_LENGTH}="
        f"{setting(config, PROMPT_LENGTH)}), responses up to {config.data.max_response_length} "
        f"tokens"
    )


def tokens_line(config: DictConfig, method: Method, settings: HintSettings, sizes: Sizes) -> str:
    """Return the most tokens that are sampled for a batch, of conversations for each turn."""
    most = sizes.batch * sizes.group * config.data.max_response_length
    told = f"{sizes.batch} x {sizes.group} x {config.data.max_response_length} = {most:,}"
    if method.uses_hints and type(method).react is not Method.react:  # it escalates
        told += f", x {1 + method.max_level} hint levels = {(1 + method.max_level) * most:,}"
    if method.uses_hints and settings.source == "self_generated":
        told += f", hints {sizes.batch * settings.attempts * settings.max_tokens:,}"
    return f"tokens    a {'turn of a ' * method.is_multi_turn}batch at most {told}"
