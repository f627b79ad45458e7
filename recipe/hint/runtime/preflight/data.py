"""Checks of the data files, and of their lengths in tokens against the settings."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.errors import ConfigError, DataError
from recipe.hint.problems.columns import read_problems
from recipe.hint.prompt import Message, Texts, hint_request, with_hint
from recipe.hint.runtime.preflight.model import Model, check_template
from recipe.hint.runtime.preflight.settings import files_of, setting
from recipe.hint.schema import Problem
from recipe.hint.settings import HintSettings

# Above this many problems, hint requests are counted in a sample.
_ALL_UP_TO = 20_000
_SAMPLE = 2_000
# A hint shorter than this many tokens says little.
_HINT_ROOM = 32
_TRAIN, _VAL = "data.train_files", "data.val_files"


@dataclass(frozen=True)
class DataFile:
    """One file and its problems; a problem's place in the list is its row in the file."""

    path: str
    problems: list[Problem]

    def summary(self) -> str:
        """Number of problems, and how many of them have a solution."""
        with_solution = sum(bool(problem.solution.strip()) for problem in self.problems)
        return f"{self.path}: {len(self.problems)} problems, {with_solution} with a solution"


@dataclass(frozen=True)
class Data:
    """All files of a run."""

    train: list[DataFile]
    val: list[DataFile]

    @property
    def problems(self) -> list[Problem]:
        """The training problems of all files."""
        return [problem for file in self.train for problem in file.problems]


@dataclass
class Lengths:
    """What was measured, in tokens, and what a person should know before the start."""

    longest_prompt: int = 0
    longest_request: int = 0
    warnings: list[str] = field(default_factory=list)


_NEEDED = (_TRAIN, _VAL, "actor_rollout_ref.model.path")


def check_given(config: DictConfig, names: Sequence[str] = _NEEDED) -> None:
    """Make sure that there are files and a model to look at.

    Raises:
        ConfigError: Naming every setting that is missing.
    """
    missing = [name for name in names if not files_of(config, name)]
    if missing:
        raise ConfigError(
            f"not set: {', '.join(missing)}; give {' '.join(f'{name}=PATH' for name in missing)}, "
            f"or hardware=laptop to run the embedded model and problems on the CPU"
        )


def read_data(config: DictConfig) -> Data:
    """Read and check all files.

    Raises:
        ConfigError: If a batch holds more problems than there are.
        DataError: If a file breaks the contract or two files share an id.
    """
    data = Data(read_files(config, _TRAIN), read_files(config, _VAL))
    _check_ids(data.train)
    _check_batch(config, data)
    return data


def check_lengths(
    config: DictConfig, data: Data, model: Model, hints: tuple[HintSettings, Texts] | None
) -> Lengths:
    """Prompts, hint requests and hinted prompts against the settings.

    Args:
        config: The run's.
        data: All files.
        model: Its template and tokenizer.
        hints: Settings and texts of the hints; ``None`` when the method uses none.

    Raises:
        ConfigError: If the lengths contradict each other, the template does not take the
            conversations, or no hint request fits.
        DataError: Naming the file and the row of a prompt that is too long.
    """
    _check_context(config, model)
    lengths = Lengths()
    for file in (*data.train, *data.val):
        check_template(model, file.problems[0].messages)
        _check_prompts(config, file, model, lengths)
    if hints is not None:
        _check_hints(config, data, model, hints=hints, lengths=lengths)
    return lengths


def read_files(config: DictConfig, name: str) -> list[DataFile]:
    """The files of ``data.train_files`` or ``data.val_files``.

    Raises:
        DataError: If a file is no parquet or breaks the contract.
    """
    files = []
    for path in files_of(config, name):
        if Path(path).suffix != ".parquet":
            raise DataError(
                f"{name}={path}: the name must end in .parquet; main_prepare.py writes such a file "
                f"from JSONL"
            )
        files.append(DataFile(path, read_problems(path)))
    return files


def _check_ids(files: Sequence[DataFile]) -> None:
    first: dict[str, tuple[str, int]] = {}
    for file in files:
        for row, problem in enumerate(file.problems):
            if problem.id in first:
                other, other_row = first[problem.id]
                raise DataError(
                    f"{other}: row {other_row} and {file.path}: row {row} have the same id "
                    f"{problem.id!r} (`extra_info.index`); ids must be unique over all of {_TRAIN}"
                )
            first[problem.id] = (file.path, row)


def _check_batch(config: DictConfig, data: Data) -> None:
    size, total = setting(config, "data.train_batch_size"), len(data.problems)
    cap = setting(config, "data.train_max_samples") or -1
    used = min(total, cap) if cap > 0 else total
    if size > used:
        raise ConfigError(
            f"data.train_batch_size={size} is above the {used} training problems, so no batch "
            f"would ever be full; give {used} or less, or more problems in {_TRAIN}"
        )


def _check_context(config: DictConfig, model: Model) -> None:
    prompt = setting(config, "actor_rollout_ref.rollout.prompt_length")
    response = setting(config, "actor_rollout_ref.rollout.response_length")
    if prompt + response > model.context:
        limit = setting(config, "actor_rollout_ref.rollout.max_model_len")
        source = "actor_rollout_ref.rollout.max_model_len" if limit else "the model's positions"
        raise ConfigError(
            f"actor_rollout_ref.rollout.prompt_length={prompt} + "
            f"data.max_response_length={response} = {prompt + response} tokens, above {source} "
            f"({model.context}); lower one of the two"
        )


def _check_prompts(config: DictConfig, file: DataFile, model: Model, lengths: Lengths) -> None:
    limits = {
        name: setting(config, name)
        for name in ("data.max_prompt_length", "actor_rollout_ref.rollout.prompt_length")
    }
    name, limit = min(limits.items(), key=lambda item: item[1])
    counts = model.count_tokens([problem.messages for problem in file.problems])
    too_long = [row for row, count in enumerate(counts) if count > limit]
    drops = limits["data.max_prompt_length"] == limit and setting(
        config, "data.filter_overlong_prompts"
    )
    if too_long and not drops:
        row = too_long[0]
        raise DataError(
            f"{file.path}: row {row}: the prompt has {counts[row]} tokens, {name}={limit} "
            f"(too long: {len(too_long)} of {len(counts)} rows, up to {max(counts)} tokens); raise "
            f"it or drop the rows"
        )
    if too_long:
        lengths.warnings.append(
            f"{file.path}: {len(too_long)} prompts above {name}={limit} are dropped "
            f"(data.filter_overlong_prompts=true)"
        )
    fitting = (count for count in counts if count <= limit)
    lengths.longest_prompt = max(lengths.longest_prompt, max(fitting, default=0))


def _check_hints(
    config: DictConfig,
    data: Data,
    model: Model,
    *,
    hints: tuple[HintSettings, Texts],
    lengths: Lengths,
) -> None:
    settings, texts = hints
    problems = _with_hints(data, settings)
    total = len(problems)
    if total > _ALL_UP_TO:
        problems = random.Random(settings.seed).sample(problems, _SAMPLE)
    if settings.source not in ("dataset", "solution_prefix"):
        _check_requests(problems, model, hints=hints, lengths=lengths, total=total)
    limit = setting(config, "actor_rollout_ref.rollout.prompt_length")
    bare = model.count_tokens(
        [with_hint(problem.messages, "", texts, settings.style) for problem in problems]
    )
    short = sum(limit - size < _HINT_ROOM for size in bare)
    text = (
        f"prompts leave fewer than {_HINT_ROOM} tokens for a hint in rollout.prompt_length={limit}"
    )
    lengths.warnings += _shares({text: short}, len(problems), total)


def _with_hints(data: Data, settings: HintSettings) -> list[Problem]:
    """The problems that the source of hints has something for."""
    if settings.source != "dataset":
        problems = [problem for problem in data.problems if problem.solution.strip()]
        column = "`solution`"
    else:
        problems = [
            problem
            for problem in data.problems
            if len(problem.hints) >= settings.max_level and all(problem.hints[: settings.max_level])
        ]
        column = " and ".join(f"`hint_level_{k}`" for k in range(1, settings.max_level + 1))
    if not problems:
        raise ConfigError(
            f"no problem of {_TRAIN} has a text in {column}, which hint.source={settings.source} "
            f"needs; add them or choose trainer.method=grpo"
        )
    return problems


def _check_requests(
    problems: Sequence[Problem],
    model: Model,
    *,
    hints: tuple[HintSettings, Texts],
    lengths: Lengths,
    total: int,
) -> None:
    settings, texts = hints
    requests: list[list[Message]] = [
        hint_request(texts, problem.text, problem.solution) for problem in problems
    ]
    check_template(model, requests[0])
    sizes = model.count_tokens(requests)
    lengths.longest_request = max(sizes)
    room = model.context - settings.max_tokens
    over = sum(size > room for size in sizes)
    if over == len(sizes):
        raise ConfigError(
            f"hint.max_tokens={settings.max_tokens}: no hint request fits, the shortest has "
            f"{min(sizes)} tokens and the model's context is {model.context} "
            f"(actor_rollout_ref.rollout.max_model_len); lower hint.max_tokens"
        )
    text = f"hint requests leave fewer than hint.max_tokens={settings.max_tokens} of the context "
    text += f"of {model.context} tokens: their hints may be cut or missing"
    lengths.warnings += _shares({text: over}, len(problems), total)


def _shares(counts: dict[str, int], seen: int, total: int) -> Iterator[str]:
    of = f"of {total}" if seen == total else f"of {seen} sampled from {total}"
    for text, count in counts.items():
        if count:
            yield f"{count} {of} {text}"
