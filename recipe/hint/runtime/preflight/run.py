"""Find in seconds what is known to fail, before any process is started.

``preflight`` reads in the order of the checks: the method, settings (``settings.py``, ``keys.py``),
the machine, the folder, then files and model (``data.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from recipe.hint.command.compose import given_settings
from recipe.hint.errors import ConfigError, DataError
from recipe.hint.evaluation.draw import check_settings_unchanged, evaluation_settings
from recipe.hint.evaluation.play import evaluated_method, played_turns
from recipe.hint.evaluation.responses import evaluation_folder, response_path
from recipe.hint.methods import Method, MultiTurn, OwnCredit
from recipe.hint.methods.cost import fewest_responses, most_responses
from recipe.hint.runtime.attention import choose_attention
from recipe.hint.runtime.merging import MERGED, checkpoint_of, model_files
from recipe.hint.runtime.models import ask_for_models, has_adapter
from recipe.hint.runtime.paths import TRAIN, VAL, local_path
from recipe.hint.runtime.preflight import data
from recipe.hint.runtime.preflight.cost import cost_line
from recipe.hint.runtime.preflight.data import DataFile, Lengths
from recipe.hint.runtime.preflight.folder import (
    check_disk,
    check_places,
    check_run_folder,
    check_steps_left,
    checkpoint_bytes,
    replay_bytes,
)
from recipe.hint.runtime.preflight.group import check_group
from recipe.hint.runtime.preflight.keys import check_read_beside, check_unread
from recipe.hint.runtime.preflight.machine import check_machine
from recipe.hint.runtime.preflight.model import MODEL, Model, check_critic_model, load_model
from recipe.hint.runtime.preflight.phases import check_phases, reference_warnings
from recipe.hint.runtime.preflight.same_run import check_same_run
from recipe.hint.runtime.preflight.seeds import seed_engines
from recipe.hint.runtime.preflight.settings import (
    PROMPT_LENGTH,
    ROLLOUT,
    check_sections,
    check_settings,
    num_updates,
    reference_and_critic,
    setting,
)
from recipe.hint.runtime.preflight.teacher import check_teacher
from recipe.hint.runtime.preflight.turns import (
    check_attempts,
    check_conversations,
    check_critic,
    check_solutions,
    check_thoughts,
    check_turns,
)
from recipe.hint.runtime.preflight.values import check_first_update, check_values
from recipe.hint.settings import (
    HintSettings,
    build_method,
    check_settings_are_read,
    read_settings,
    read_texts,
    settings_of,
    source_of,
    style_of,
)

_UNIQUE = "and the same `data_source`; give one of them another"
_SAMPLING = ("temperature", "top_p", "top_k")
# Settings of a training that would be left out of an evaluation without a word.
_NOT_EVALUATED = {
    "data.val_max_samples": "would not be read: an evaluation is of whole files; drop it, or give "
    "a file of fewer rows",
    "actor_rollout_ref.model.lora_adapter_path": "would not be read: an evaluation serves the "
    "weights of actor_rollout_ref.model.path alone; give a checkpoint of the training, whose "
    "adapter is merged, or a folder with the adapter merged",
}


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
    given, (config, settings) = config, _resolved(config)
    texts = read_texts(settings)
    name = _method_name(config)
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
    # A copy: these are the trainer's own, and a resumed run is compared by what was given.
    with_models = config.copy()
    ask_for_models(with_models, method)
    choose_attention(with_models)  # a critic needs flash-attn on a GPU
    check_values(config)
    check_settings(with_models)
    check_first_update(with_models)
    check_read_beside(config, given_settings(argv), reference_and_critic(with_models)[1])
    group = config.actor_rollout_ref.rollout.n
    if not setting(config, "trainer.val_only"):
        check_group(config, method)
        method.check_run(
            group_size=group,
            use_kl_in_reward=setting(config, "algorithm.use_kl_in_reward"),
            num_updates=num_updates(config),
        )
    unchecked = check_machine(config)
    has_critic = reference_and_critic(with_models)[1]
    folder = check_run_folder(config, has_critic=has_critic)
    train, val = data.read_training_files(config), data.read_files(config, VAL)
    data.check_alike(train, TRAIN)
    data.check_alike(val, VAL)
    data.check_unique(val, lambda problem: (problem.data_source, problem.id), _UNIQUE)
    model = load_model(config)
    critic = check_critic_model(config, model) if has_critic else 0
    hints = (settings, texts) if method.uses_hints else None
    lengths = data.check_lengths(config, model, train=train, val=val, hints=hints)
    check_conversations(config, method, model, texts, [*train, *val])
    check_attempts(config, method, model, train)
    check_solutions(config, method, model, train)
    check_thoughts(config, method, model, train)
    batch = config.data.train_batch_size
    per_epoch = data.num_training_problems(config, train, lengths.num_dropped) / batch
    if per_epoch < 1:
        raise ConfigError(
            f"data.train_batch_size={batch} is above the training problems that "
            f"data.filter_overlong_prompts=true leaves; give less, or raise data.max_prompt_length"
        )
    by_epochs = int(per_epoch) * setting(config, "trainer.total_epochs")
    steps = min(by_epochs, setting(config, "trainer.total_training_steps") or by_epochs)
    given.trainer.total_training_steps = config.trainer.total_training_steps = steps
    check_steps_left(config, steps)
    changed = check_same_run(config)
    seed_engines(given, config, argv)
    check_phases(config, method, steps)
    least, most = (batch * of(method, group) for of in (fewest_responses, most_responses))
    learner = method.utterance_critic if isinstance(method, OwnCredit) else None
    size = checkpoint_bytes(
        config,
        model.num_parameters,
        critic,
        has_target=learner is not None,
        is_frozen=has_adapter(config),
    )
    if size and learner:
        size += replay_bytes(config, learner.capacity, steps * most)
    disk = check_room(config, size, steps, has_critic=has_critic)
    num_validated = sum(len(file.problems) for file in val)
    return [
        f"method    {name}, {_plays(method, settings)}",
        _model_line(model.path, model),
        *(f"train     {_contents(file)}" for file in train),
        *(f"validate  {_contents(file)}" for file in val),
        f"batch     {batch} prompts x {group} rollouts, mini-batches of "
        f"{config.actor_rollout_ref.actor.ppo_mini_batch_size} prompts, {steps} steps "
        f"({steps / per_epoch:.1f} epochs)",
        _lengths_line(config, lengths, settings, method),
        f"cost      {cost_line(config, (least, most), num_validated, steps)}",
        f"sampling  {_sampling(config, method)}",
        f"{_devices(config)}, trainer mode {setting(config, 'trainer.v1.trainer_mode')}",
        f"folder    {settings.run_dir} ({folder})",
        f"disk      {disk}",
        *changed,
        *unchecked,
        *silent,
        *_oracles(method),
        *reference_warnings(with_models),
        *_trained_on(train, val),
        *(f"warning: {warning}" for warning in lengths.warnings),
    ]


def _trained_on(train: Sequence[data.DataFile], val: Sequence[data.DataFile]) -> list[str]:
    trained = {Path(file.path).resolve() for file in train}
    return [
        f"warning: {VAL} has {file.path}, which the run trains on: its accuracy says nothing about "
        f"other problems"
        for file in val
        if Path(file.path).resolve() in trained
    ]


def _method_name(config: DictConfig) -> str:
    name = setting(config, "trainer.method")
    if not isinstance(name, str):
        raise ConfigError(f"trainer.method={name} must be the name of a method")
    return name


def _oracles(method: Method) -> list[str]:
    """Return a warning for each setting that makes accuracies those of policy and verifier."""
    names = method.verdict_dependent_settings if isinstance(method, MultiTurn) else ()
    return [
        f"warning: {method.settings_node}.{name}=true: later turns know the verdict on earlier "
        f"ones, in validations and evaluations too; their accuracy is not the policy's alone"
        for name in names
    ]


def check_given_to_evaluation(config: DictConfig, argv: Sequence[str]) -> None:
    """Refuse settings that an evaluation does not read; the settings are still as they were given.

    A command line with a method, an experiment or the order of the training data may be that of a
    run whose weights are evaluated: it gives what its method reads.

    Raises:
        ConfigError: Naming the setting, and the one that is read.
    """
    given, settings = given_settings(argv), settings_of(config)
    check_settings_are_read(_method_name(config), given, settings)
    for name, told in _NOT_EVALUATED.items():
        if setting(config, name) not in (None, -1):
            raise ConfigError(f"{name}={setting(config, name)} {told}")
    if given.keys() & {"trainer.method", "experiment", "data.seed"}:
        return
    check_settings_are_read(
        evaluated_method(config), given, settings, who="trainer.eval_only=true, without hints"
    )
    _check_sampling_given(given, ROLLOUT, f"{ROLLOUT}.val_kwargs", "an evaluation")


def check_given_to_question(config: DictConfig, argv: Sequence[str]) -> None:
    """Refuse settings that a question to a model does not read: it samples as training does."""
    given = given_settings(argv)
    check_settings_are_read(_method_name(config), given, settings_of(config))
    _check_sampling_given(given, f"{ROLLOUT}.val_kwargs", ROLLOUT, "main_ask.py")


def _check_sampling_given(given: Collection[str], unread: str, read: str, who: str) -> None:
    for name in _SAMPLING:
        if f"{unread}.{name}" in given and f"{read}.{name}" not in given:
            raise ConfigError(
                f"{unread}.{name} would not be read: {who} samples with {read}.{name}; give that"
            )


def preflight_evaluation(config: DictConfig, argv: Sequence[str] = ()) -> list[str]:
    """Check an evaluation's settings, machine, data and model; write nothing.

    ``rollout.seed`` is derived, where it is verl's.

    Returns:
        Lines that say what will run.
    """
    given, (config, settings) = config, _resolved(config)
    method = build_method(config.trainer, settings)
    silent = check_teacher(config, method, settings)
    data.check_given(config, (VAL, MODEL))
    check_unread(config, settings)
    check_values(config)
    check_settings(config)
    unchecked = check_machine(config)
    check_places(config)
    files = data.read_files(config, VAL)
    _check_benchmarks(files)
    model, served = _served_model(config)
    lengths = data.check_lengths(config, model, val=files)
    check_conversations(config, method, model, read_texts(settings), files)
    folder = evaluation_folder(config)
    paths = [file.path for file in files]
    drawn_with = evaluation_settings(config, paths, played_turns(config)) | {"model": served}
    check_settings_unchanged(folder, drawn_with)
    seed_engines(given, config, argv)
    val = config.actor_rollout_ref.rollout.val_kwargs
    total = val.n * sum(len(file.problems) for file in files)
    sources = [sorted({problem.data_source for problem in file.problems}) for file in files]
    return [
        f"evaluate  {_evaluates(config, method)}",
        _model_line(served, model),
        *(
            f"problems  {file.path}: {len(file.problems)} of {', '.join(names)}"
            for file, names in zip(files, sources, strict=True)
        ),
        f"samples   {val.n} of each, {total} in all, T={val.temperature} top_p={val.top_p}, "
        f"seed {settings.seed}",
        _lengths_line(config, lengths, settings, method),
        _devices(config),
        f"folder    {settings.run_dir}{' (has samples)' if (folder / 'samples').exists() else ''}",
        *unchecked,
        *silent,
        *_oracles(method),
        *(f"warning: {warning}" for warning in lengths.warnings),
    ]


def _resolved(config: DictConfig) -> tuple[DictConfig, HintSettings]:
    node: Any = OmegaConf.to_container(config, resolve=True)
    resolved = DictConfig(node)
    check_sections(resolved)
    return resolved, read_settings(node["hint"])


def _check_benchmarks(files: Sequence[DataFile]) -> None:
    """Check that ids and file names are unique; one benchmark may be spread over files."""
    names: dict[str, str] = {}
    for file in files:
        for row, problem in enumerate(file.problems):
            place, source = f"{file.path}: row {row}", problem.data_source
            if not source:
                raise DataError(f"{place}, column `data_source`: empty; it names the benchmark")
            name = response_path(Path(), source).name
            if names.setdefault(name, source) != source:
                raise DataError(
                    f"{place}: the data sources {source!r} and {names[name]!r} would share the "
                    f"file {name}; rename one"
                )
    data.check_unique(files, lambda problem: (problem.data_source, problem.id), _UNIQUE)


def _served_model(config: DictConfig) -> tuple[Model, str]:
    """Return the model, and the folder the replicas will read: a checkpoint's comes later."""
    path = str(setting(config, MODEL))
    checkpoint = checkpoint_of(path)
    if checkpoint is None:
        # As the launcher hands it on, and as the samples' settings have it.
        return load_model(config), local_path(path)
    files, has_weights = model_files(checkpoint)
    config = config.copy()
    config.actor_rollout_ref.model.path = str(files)
    return load_model(config, has_weights=has_weights), str(checkpoint / MERGED)


def _model_line(path: str, model: Model) -> str:
    count = model.num_parameters
    size = "size unknown" if count is None else f"{count / 1e6:,.2f} M parameters"
    return f"model     {path}: {size}, context {model.context} tokens"


def _contents(file: DataFile) -> str:
    with_solution = sum(bool(problem.solution.strip()) for problem in file.problems)
    return f"{file.path}: {len(file.problems)} problems, {with_solution} with a solution"


def _evaluates(config: DictConfig, method: Method) -> str:
    if method.is_multi_turn:
        return f"the turns of {evaluated_method(config)}, by the last"
    return "without hints"


def _plays(method: Method, settings: HintSettings) -> str:
    if method.is_multi_turn:
        return "several turns; validation goes by the last"
    if not method.uses_hints:
        return "without hints"
    return f"hint levels up to {method.max_level}, {settings.source}, style {settings.style}"


def _lengths_line(
    config: DictConfig, lengths: Lengths, settings: HintSettings, method: Method
) -> str:
    longer = "earlier turns" if method.is_multi_turn else "hint"
    limit = f" (limit with {longer} {setting(config, PROMPT_LENGTH)})"
    has_limit = method.uses_hints or method.is_multi_turn
    requests = f", hint requests up to {lengths.longest_request} + {settings.max_tokens}"
    return (
        f"lengths   prompts up to {lengths.longest_prompt}"
        f"{limit if has_limit else ''}, responses up to "
        f"{config.data.max_response_length} tokens{requests if lengths.longest_request else ''}"
    )


def _sampling(config: DictConfig, method: Method) -> str:
    rollout = config.actor_rollout_ref.rollout
    nodes = {"rollouts": rollout, "hints": config.hint, "validation": rollout.val_kwargs}
    if not method.uses_hints:
        del nodes["hints"]
    parts = "; ".join(f"{who} T={of.temperature} top_p={of.top_p}" for who, of in nodes.items())
    return f"{parts} x {rollout.val_kwargs.n} samples"


def _devices(config: DictConfig) -> str:
    trainer = config.trainer
    return f"devices   {trainer.nnodes} x {trainer.n_gpus_per_node} {trainer.device}"
