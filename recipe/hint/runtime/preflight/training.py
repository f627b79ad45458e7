"""What can be known to go wrong, found in seconds, before any process is started."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from omegaconf import DictConfig, OmegaConf

from recipe.hint.command.compose import given_settings
from recipe.hint.errors import ConfigError
from recipe.hint.hints.teacher_settings import check_teacher
from recipe.hint.methods import Method
from recipe.hint.methods.cost import most_responses
from recipe.hint.runtime.preflight.data import (
    Data,
    Lengths,
    check_given,
    check_lengths,
    read_data,
)
from recipe.hint.runtime.preflight.folder import check_run_folder
from recipe.hint.runtime.preflight.machine import check_disk, check_machine
from recipe.hint.runtime.preflight.model import Model, load_model
from recipe.hint.runtime.preflight.resume import check_same_run
from recipe.hint.runtime.preflight.rewards import check_rewards
from recipe.hint.runtime.preflight.settings import check_sections, check_settings, setting
from recipe.hint.settings import (
    HintSettings,
    build_method,
    check_settings_are_read,
    read_settings,
    read_texts,
    source_of,
)


def preflight(config: DictConfig, argv: Sequence[str]) -> list[str]:
    """Check a run's settings, machine, data and model; write nothing.

    Args:
        config: Composed by Hydra, not necessarily resolved.
        argv: The overrides of the command line; a knob given there must be read by the method.

    Returns:
        Lines that say what will run, and warnings.

    Raises:
        ConfigError: On the first setting that cannot work.
        DataError: On the first data file that breaks the contract or does not fit.
    """
    config = OmegaConf.create(OmegaConf.to_container(config, resolve=True))
    check_sections(config)
    settings = read_settings(OmegaConf.to_container(config.hint))
    texts = read_texts(settings)
    method = _method(config, settings, argv)
    settings = replace(settings, source=source_of(settings, method))
    if method.uses_hints and settings.source == "teacher":
        check_teacher(settings.teacher, os.environ)
        from recipe.hint.hints.teacher import check_reached  # the HTTP library

        check_reached(settings.teacher, os.environ)
    check_given(config)
    check_settings(config)
    check_rewards(config, settings)
    unchecked = check_machine(config)
    folder = check_run_folder(config)
    changed = check_same_run(config)
    data = read_data(config)
    model = load_model(config)
    hints = (settings, texts) if method.uses_hints else None
    lengths = check_lengths(config, data, model, hints)
    steps = num_steps(config, data)
    disk = check_disk(config, model.num_parameters, steps)
    run = _Run(config, settings, method, steps)
    lines = [
        *run.what(model),
        *(f"train     {file.summary()}" for file in data.train),
        *(f"validate  {file.summary()}" for file in data.val),
        *run.how(data, model, lengths),
        f"folder    {settings.run_dir} ({folder})",
        f"disk      {disk}",
        *changed,
        *unchecked,
    ]
    return lines + [f"warning: {warning}" for warning in lengths.warnings]


def num_steps(config: DictConfig, data: Data) -> int:
    """Training steps until verl's loop ends, by steps or by epochs, whichever is first."""
    cap = setting(config, "data.train_max_samples") or -1
    total = len(data.problems)
    used = min(total, cap) if cap > 0 else total
    per_epoch = used // setting(config, "data.train_batch_size")
    by_epochs = per_epoch * setting(config, "trainer.total_epochs")
    return min(by_epochs, setting(config, "trainer.total_training_steps") or by_epochs)


def _method(config: DictConfig, settings: HintSettings, argv: Sequence[str]) -> Method:
    name = setting(config, "trainer.method")
    if not isinstance(name, str):
        raise ConfigError(f"trainer.method={name} must be the name of a method")
    method = build_method(config.trainer, settings)
    check_settings_are_read(name, given_settings(argv), settings)
    return method


class _Run:
    """The lines of the summary."""

    def __init__(
        self, config: DictConfig, settings: HintSettings, method: Method, steps: int
    ) -> None:
        self._config = config
        self._settings = settings
        self._method = method
        self._steps = steps

    def what(self, model: Model) -> Iterator[str]:
        """Method and model."""
        hint = self._settings
        hint_levels = "without hints"
        if self._method.uses_hints:
            hint_levels = (
                f"hint levels up to {self._method.max_level}, {hint.source}, style {hint.style}"
            )
        yield f"method    {self._of('trainer.method')}, {hint_levels}"
        size = "size unknown"
        if model.num_parameters is not None:
            size = f"{model.num_parameters / 1e6:,.2f} M parameters"
        yield f"model     {model.path}: {size}, context {model.context} tokens"

    def how(self, data: Data, model: Model, lengths: Lengths) -> Iterator[str]:
        """Sizes, lengths, sampling and devices."""
        of, steps = self._of, self._steps
        batch, group = of("data.train_batch_size"), of("actor_rollout_ref.rollout.n")
        epochs = steps * batch / len(data.problems)
        yield (
            f"batch     {batch} prompts x {group} rollouts, mini-batches of "
            f"{of('actor_rollout_ref.actor.ppo_mini_batch_size')} prompts, {steps} steps "
            f"({epochs:.1f} epochs)"
        )
        answer, limit = (
            of("data.max_response_length"),
            of("actor_rollout_ref.rollout.prompt_length"),
        )
        line = f"lengths   prompts up to {lengths.longest_prompt} (limit with hint {limit}), "
        line += f"answers up to {answer} tokens"
        if lengths.longest_request:
            line += f", hint requests up to {lengths.longest_request} + {self._settings.max_tokens}"
        yield line
        least, most = batch * group, batch * most_responses(self._method, group)
        yield (
            f"cost      {least:,} answers a step, {most:,} if none were ever right: at most "
            f"{least * answer / 1e6:,.3g} and {most * answer / 1e6:,.3g} M tokens"
        )
        yield f"sampling  {self._sampling()}"
        devices = f"{of('trainer.nnodes')} x {of('trainer.n_gpus_per_node')} {of('trainer.device')}"
        yield f"devices   {devices}, trainer mode {of('trainer.v1.trainer_mode')}"

    def _sampling(self) -> str:
        parts = [("rollouts", "actor_rollout_ref.rollout"), ("hints", "hint")]
        parts.append(("validation", "actor_rollout_ref.rollout.val_kwargs"))
        texts = []
        for who, node in parts:
            if who == "hints" and not self._method.uses_hints:
                continue
            texts.append(
                f"{who} T={self._of(f'{node}.temperature')} top_p={self._of(f'{node}.top_p')}"
            )
        return f"{'; '.join(texts)} x {self._of('actor_rollout_ref.rollout.val_kwargs.n')} samples"

    def _of(self, name: str) -> object:
        return setting(self._config, name)
