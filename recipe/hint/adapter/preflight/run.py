"""Find in seconds what is known to fail in a training, before any process is started.

``preflight`` reads in the order of the checks: the method, settings (``settings.py``, ``keys.py``),
the machine, the folder, then files and model (``data.py``), steps and disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from omegaconf import DictConfig

from recipe.hint.adapter.attention import choose_attention
from recipe.hint.adapter.models import ask_for_models, has_adapter
from recipe.hint.adapter.preflight import data, summary
from recipe.hint.adapter.preflight.cost import cost_line
from recipe.hint.adapter.preflight.data import Lengths
from recipe.hint.adapter.preflight.folder import (
    check_disk,
    check_run_folder,
    check_steps_left,
    checkpoint_bytes,
    replay_bytes,
)
from recipe.hint.adapter.preflight.given import method_name, resolved
from recipe.hint.adapter.preflight.group import check_group
from recipe.hint.adapter.preflight.keys import check_read_beside, check_unread
from recipe.hint.adapter.preflight.machine import check_machine
from recipe.hint.adapter.preflight.model import MODEL, Model, check_critic_model, load_model
from recipe.hint.adapter.preflight.phases import (
    check_phases,
    reference_warnings,
    warmup_warnings,
)
from recipe.hint.adapter.preflight.same_run import check_same_run
from recipe.hint.adapter.preflight.seeds import seed_engines
from recipe.hint.adapter.preflight.settings import (
    check_settings,
    num_updates,
    reference_and_critic,
    setting,
)
from recipe.hint.adapter.preflight.teacher import check_teacher
from recipe.hint.adapter.preflight.turns import (
    check_attempts,
    check_conversations,
    check_critic,
    check_solutions,
    check_thoughts,
    check_turns,
)
from recipe.hint.adapter.preflight.values import check_first_update, check_values
from recipe.hint.command.aliases import given_settings
from recipe.hint.methods import Method, OwnCredit
from recipe.hint.methods.cost import fewest_responses, most_responses
from recipe.hint.prompt import Texts
from recipe.hint.settings import (
    HintSettings,
    build_method,
    check_settings_are_read,
    read_texts,
    source_of,
    style_of,
)
from recipe.problems.columns import ProblemFile
from recipe.run.errors import ConfigError
from recipe.run.paths import TRAIN, VAL


@dataclass(frozen=True)
class _Run:
    """What was asked for; ``with_models`` has what the method adds to the configuration.

    ``with_models`` is a copy: those settings are the trainer's own, and a resumed run is compared
    by what was given.
    """

    config: DictConfig
    with_models: DictConfig
    settings: HintSettings
    texts: Texts
    method: Method

    @property
    def has_critic(self) -> bool:
        return reference_and_critic(self.with_models)[1]


@dataclass(frozen=True)
class _Files:
    """What was read; ``critic_size`` counts the parameters of verl's critic, if known."""

    train: list[ProblemFile]
    val: list[ProblemFile]
    model: Model
    critic_size: int | None
    lengths: Lengths


def preflight(
    config: DictConfig, argv: Sequence[str], *, check_room: Callable[..., str] = check_disk
) -> list[str]:
    """Check a run's settings, machine, data and model; write nothing.

    Args:
        config: Composed by Hydra, not necessarily resolved. ``trainer.total_training_steps`` is set
            to the steps that there will be: verl would end at the last epoch without its last save.
            ``rollout.seed`` is derived, where it is verl's.
        argv: The overrides of the command line; a knob given there must be read by the method.
        check_room: Makes sure that what is saved fits the disk, as ``check_disk`` does.

    Returns:
        Lines that say what will run, and warnings.
    """
    given, (config, settings) = config, resolved(config)
    run, silent = _check_settings(config, settings, argv)
    unchecked = check_machine(config)
    folder = check_run_folder(config, has_critic=run.has_critic)
    files = _check_files(run)
    steps, epochs = _count_steps(config, files)
    given.trainer.total_training_steps = config.trainer.total_training_steps = steps
    check_steps_left(config, steps)
    changed = check_same_run(config)
    seed_engines(given, config, argv)
    check_phases(config, run.method, steps)
    batch, group = config.data.train_batch_size, config.actor_rollout_ref.rollout.n
    least, most = (batch * of(run.method, group) for of in (fewest_responses, most_responses))
    size = _checkpoint_bytes(run, files, steps * most)
    disk = check_room(config, size, steps, has_critic=run.has_critic)
    num_validated = sum(len(file.problems) for file in files.val)
    method, settings = run.method, run.settings
    return [
        f"method    {method_name(config)}, {summary.plays(method, settings)}",
        summary.model_line(files.model.path, files.model),
        *(f"train     {file.summary()}" for file in files.train),
        *(f"validate  {file.summary()}" for file in files.val),
        f"batch     {batch} prompts x {group} rollouts, mini-batches of "
        f"{config.actor_rollout_ref.actor.ppo_mini_batch_size} prompts, {steps} steps "
        f"({epochs:.1f} epochs)",
        summary.lengths_line(config, files.lengths, settings, method),
        f"cost      {cost_line(config, (least, most), num_validated, steps)}",
        f"sampling  {summary.sampling(config, method)}",
        f"{summary.devices(config)}, trainer mode {setting(config, 'trainer.v1.trainer_mode')}",
        f"folder    {settings.run_dir} ({folder})",
        f"disk      {disk}",
        *changed,
        *unchecked,
        *silent,
        *summary.oracles(method),
        *reference_warnings(run.with_models),
        *warmup_warnings(config, method),
        *summary.trained_on(files.train, files.val),
        *(f"warning: {warning}" for warning in files.lengths.warnings),
    ]


def _check_settings(
    config: DictConfig, settings: HintSettings, argv: Sequence[str]
) -> tuple[_Run, list[str]]:
    """Check all that needs no file; return what was asked for, and warnings of the teacher."""
    texts, name = read_texts(settings), method_name(config)
    method = build_method(config.trainer, settings)
    check_settings_are_read(name, given_settings(argv), settings)
    settings = replace(
        settings, source=source_of(settings, method), style=style_of(settings, method)
    )
    silent = check_teacher(config, method, settings)
    data.check_given(config, (TRAIN, VAL, MODEL))
    check_unread(config, settings)
    check_turns(config, method)
    check_critic(config, method)
    with_models = config.copy()
    ask_for_models(with_models, method)
    choose_attention(with_models)  # a critic needs flash-attn on a GPU
    run = _Run(config, with_models, settings, texts, method)
    check_values(config)
    check_settings(with_models)
    check_first_update(with_models)
    check_read_beside(config, given_settings(argv), run.has_critic)
    if not setting(config, "trainer.val_only"):
        check_group(config, method)
        method.check_run(
            group_size=config.actor_rollout_ref.rollout.n,
            use_kl_in_reward=setting(config, "algorithm.use_kl_in_reward"),
            num_updates=num_updates(config),
        )
    return run, silent


def _check_files(run: _Run) -> _Files:
    config, method = run.config, run.method
    train, val = data.read_training_files(config), data.read_files(config, VAL)
    data.check_alike(train, TRAIN)
    data.check_alike(val, VAL)
    data.check_unique_in_source(val)
    model = load_model(config)
    critic_size = check_critic_model(config, model) if run.has_critic else 0
    hints = (run.settings, run.texts) if method.uses_hints else None
    lengths = data.check_lengths(config, model, train=train, val=val, hints=hints)
    check_conversations(config, method, model, run.texts, [*train, *val])
    check_attempts(config, method, model, train)
    check_solutions(config, method, model, train)
    check_thoughts(config, method, model, train)
    return _Files(train, val, model, critic_size, lengths)


def _count_steps(config: DictConfig, files: _Files) -> tuple[int, float]:
    """Return the steps that there will be, and how many epochs they are."""
    batch = config.data.train_batch_size
    count = data.num_training_problems(config, files.train, files.lengths.num_dropped)
    per_epoch = count / batch
    if per_epoch < 1:
        raise ConfigError(
            f"data.train_batch_size={batch} is above the training problems that "
            f"data.filter_overlong_prompts=true leaves; give less, or raise data.max_prompt_length"
        )
    by_epochs = int(per_epoch) * setting(config, "trainer.total_epochs")
    steps = min(by_epochs, setting(config, "trainer.total_training_steps") or by_epochs)
    return steps, steps / per_epoch


def _checkpoint_bytes(run: _Run, files: _Files, num_responses: int) -> int | None:
    """Return the size of a checkpoint, with the replay of all responses; ``None``: not known."""
    learner = run.method.utterance_critic if isinstance(run.method, OwnCredit) else None
    size = checkpoint_bytes(
        run.config,
        files.model.num_parameters,
        files.critic_size,
        has_target=learner is not None,
        is_frozen=has_adapter(run.config),
    )
    if size and learner:
        size += replay_bytes(run.config, learner.capacity, num_responses)
    return size
