"""Check the data: contract, chat template, and lengths in tokens."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig

from recipe.hint.adapter.preflight.model import MAX_MODEL_LEN, Model
from recipe.hint.adapter.preflight.settings import PROMPT_LENGTH, ROLLOUT, files_of, setting
from recipe.hint.hints.self_generated import hint_request
from recipe.hint.methods import BASELINE
from recipe.hint.prompt import Texts, with_hint
from recipe.hint.settings import HintSettings
from recipe.problems.checks import odd_golds
from recipe.problems.columns import ProblemFile, check_there, read_file
from recipe.problems.schema import SOLUTION, Problem, complete_sets
from recipe.run.errors import ConfigError, DataError, one_line
from recipe.run.paths import TRAIN
from recipe.verify.answer import unasked_warning

# Above this many problems, hint requests are counted in a sample.
_ALL_UP_TO = 20_000
_SAMPLE = 2_000
# A hint shorter than this many tokens says little.
_HINT_ROOM = 32
# A reply with hints has this many tokens or more, but for models with fewer parameters, which are
# made for their task.
_HINT_TOKENS, _TAUGHT = 256, 25_000_000


@dataclass
class Lengths:
    """What was measured, in tokens, and what a person should know before the start."""

    longest_prompt: int = 0
    longest_request: int = 0
    num_dropped: int = 0  # training problems
    warnings: list[str] = field(default_factory=list)


def check_given(config: DictConfig, names: Sequence[str]) -> None:
    """Make sure that there are files and a model to look at."""
    missing = [name for name in names if not files_of(config, name)]
    if missing:
        raise ConfigError(
            f"not set: {', '.join(missing)}; give {' '.join(f'{name}=PATH' for name in missing)}, "
            f"or hardware=laptop to run the embedded model and problems on the CPU"
        )
    # Before a model is looked for, which may be on the hub.
    paths = [files_of(config, name) for name in names if name.startswith("data.")]
    for path in itertools.chain.from_iterable(paths):
        check_there(path)


def read_files(config: DictConfig, name: str) -> list[ProblemFile]:
    """Read the files of ``data.train_files`` or ``data.val_files``; each may be given once."""
    files: list[ProblemFile] = []
    places: set[Path] = set()
    for path in files_of(config, name):
        place = Path(path).resolve()
        if place in places:
            raise DataError(f"{name} has the file {place} twice; drop one of them")
        places.add(place)
        if Path(path).suffix != ".parquet":
            raise DataError(
                f"{name}={path}: the name must end in .parquet; main_prepare.py {path} "
                f"{Path(path).stem}.parquet writes such a file (docs/data.md)"
            )
        files.append(read_file(path, setting(config, "data.solution_key") or ""))
    return files


def file_warnings(file: ProblemFile) -> list[str]:
    """Return what to know about a file, a line each."""
    golds = [each.answer if each.kind == "maths" else "" for each in file.problems]
    places = [f"row {number}" for number in range(len(golds))]
    found = [each.line(file.path).removeprefix("warning: ") for each in odd_golds(golds, places)]
    if file.reserved:
        names = ", ".join(f"`{name}`" for name in file.reserved)
        found.append(
            f"{file.path}: {names}: verl's batches have fields of this name, so these columns do "
            f"not reach them or a reward function; rename what is needed"
        )
    return found


def check_alike(files: Sequence[ProblemFile], name: str) -> None:
    """Refuse files whose columns verl could not put under each other.

    Raises:
        DataError: Naming the file and what it has of another kind.
    """
    if len(files) < 2:
        return
    import datasets

    # One row of each: that is enough for the types, and as verl does it.
    firsts = [next(pq.ParquetFile(each.path).iter_batches(batch_size=1)) for each in files]
    rows = [datasets.Dataset(pa.Table.from_batches([each])) for each in firsts]
    for file, row in zip(files[1:], rows[1:], strict=True):
        try:
            datasets.concatenate_datasets([rows[0], row])
        except ValueError as error:
            raise DataError(
                f"{file.path} and {files[0].path} of {name} cannot be put together: "
                f"{one_line(error)}; put both into a folder, and main_prepare.py FOLDER OUT.parquet"
            ) from error


def read_training_files(config: DictConfig) -> list[ProblemFile]:
    """Read ``data.train_files``: ids are unique over all files, and there is a whole batch."""
    files = read_files(config, TRAIN)
    check_unique(files, lambda problem: problem.id, f"ids must be unique over all of {TRAIN}")
    size, used = setting(config, "data.train_batch_size"), num_training_problems(config, files)
    if size > used:
        raise ConfigError(
            f"data.train_batch_size={size} is above the {used} training problems, so no batch "
            f"would ever be full; give {used} or less, or more problems in {TRAIN}"
        )
    return files


def check_unique_in_source(files: Sequence[ProblemFile]) -> None:
    """Refuse two problems of one data source with one id, naming both rows."""
    rule = "and the same `data_source`; give one of them another"
    check_unique(files, lambda problem: (problem.data_source, problem.id), rule)


def check_unique(
    files: Sequence[ProblemFile], key_of: Callable[[Problem], object], rule: str
) -> None:
    """Refuse two problems of all files with one key, naming both rows."""
    first: dict[object, str] = {}
    for file in files:
        for row, problem in enumerate(file.problems):
            place = f"{file.path}: row {row}"
            other = first.setdefault(key_of(problem), place)
            if other != place:
                raise DataError(
                    f"{other} and {place} have the same id {problem.id!r} (`extra_info.index`); "
                    f"{rule}"
                )


def num_training_problems(
    config: DictConfig, files: Sequence[ProblemFile], num_dropped: int = 0
) -> int:
    """Count the problems that an epoch draws from, at most: which of a share are dropped is open.

    Args:
        config: The run's.
        files: The training files.
        num_dropped: Over-long prompts of these files that verl drops.
    """
    total = sum(len(file.problems) for file in files) - num_dropped
    cap = setting(config, "data.train_max_samples") or -1
    return min(total, cap) if cap > 0 else total


def check_lengths(
    config: DictConfig,
    model: Model,
    *,
    val: Sequence[ProblemFile],
    train: Sequence[ProblemFile] = (),
    hints: tuple[HintSettings, Texts] | None = None,
) -> Lengths:
    """Check prompts, hint requests and hinted prompts against the settings.

    Args:
        config: The run's.
        model: Its template and tokenizer.
        val: The validation files.
        train: The training files; none in an evaluation.
        hints: Settings and texts of the hints; ``None`` when the method uses none.
    """
    prompt, response = setting(config, PROMPT_LENGTH), setting(config, f"{ROLLOUT}.response_length")
    if prompt + response > model.context:
        source = MAX_MODEL_LEN if setting(config, MAX_MODEL_LEN) else "the model's positions"
        raise ConfigError(
            f"{PROMPT_LENGTH}={prompt} + data.max_response_length={response} = {prompt + response} "
            f"tokens, above {source} ({model.context}); lower one of the two"
        )
    lengths = Lengths(warnings=list(model.warnings))
    _check_system_turns(config, model, (*train, *val))
    for file in (*train, *val):
        model.check_template(file.problems[0].messages)
        if not setting(config, "reward.custom_reward_function.path"):
            prompts = [each.messages for each in file.problems if each.kind != "program"]
            chosen = setting(config, "hint.verify.answer_format")
            if warning := unasked_warning(prompts, chosen):
                lengths.warnings.append(f"{file.path}: {warning}")
        lengths.warnings += file_warnings(file)
        num_dropped = _check_prompts(config, file, model, lengths)
        lengths.num_dropped += num_dropped if file in train else 0
    lengths.warnings = list(dict.fromkeys(lengths.warnings))
    if hints is not None:
        settings, texts = hints
        problems = _with_hints(train, settings)
        total = len(problems)
        if 2 * total < (num_all := sum(len(file.problems) for file in train)):
            lengths.warnings.append(
                f"{total} of {num_all} training problems have what hint.source={settings.source} "
                f"needs; the others train without hints"
            )
        if total > _ALL_UP_TO:
            problems = random.Random(settings.seed).sample(problems, _SAMPLE)
        of = f"of {total}" if total == len(problems) else f"of {len(problems)} sampled from {total}"
        if settings.source not in ("dataset", "solution_prefix"):
            _check_requests(problems, model, hints=hints, lengths=lengths, of=of)
        style = settings.style
        sizes = model.count_tokens(
            [
                problem.messages
                if style is None or style == "prefill"
                else with_hint(problem.messages, "", texts, style)
                for problem in problems
            ]
        )
        if short := sum(prompt - size < _HINT_ROOM for size in sizes):
            lengths.warnings.append(
                f"{short} {of} prompts leave fewer than {_HINT_ROOM} tokens for a hint in "
                f"rollout.prompt_length={prompt}"
            )
    return lengths


def _check_system_turns(config: DictConfig, model: Model, files: Sequence[ProblemFile]) -> None:
    """Check that verl's own filter drops no prompt for its system turn."""
    name = "data.filter_overlong_prompts"
    if not model.folds_system or not setting(config, name):
        return
    for file in files:
        for row, problem in enumerate(file.problems):
            if any(turn["role"] == "system" for turn in problem.messages):
                raise ConfigError(
                    f"{name}=true: {file.path}: row {row} has a system turn, which the chat "
                    f"template of {model.path} refuses: verl's filter would drop the row without a "
                    f"word; set it to false"
                )


def _check_prompts(config: DictConfig, file: ProblemFile, model: Model, lengths: Lengths) -> int:
    """Check that prompts fit; return how many verl drops, which an evaluation never does."""
    # Of equal ones the first, by which verl drops rows.
    name = min("data.max_prompt_length", PROMPT_LENGTH, key=lambda name: setting(config, name))
    limit = setting(config, name)
    counts = model.count_tokens([problem.messages for problem in file.problems])
    too_long = [row for row, count in enumerate(counts) if count > limit]
    is_training = not setting(config, "trainer.eval_only")
    is_dropped = (
        is_training and name != PROMPT_LENGTH and setting(config, "data.filter_overlong_prompts")
    )
    if too_long and not is_dropped:
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
    return len(too_long)


def _with_hints(files: Sequence[ProblemFile], settings: HintSettings) -> list[Problem]:
    """Return the problems that the source of hints has something for."""
    problems = [problem for file in files for problem in file.problems]
    if settings.source == "dataset":
        levels = settings.max_level
        found = [each for each in problems if all(complete_sets(each.hints, levels))]
        columns = " and ".join(f"`hint_level_{level}`" for level in range(1, levels + 1))
        columns += " (main_prepare.py hints writes them)"
    else:
        found = [each for each in problems if each.solution.strip()]
        columns = f"`{'`, `'.join(SOLUTION)}` or what data.solution_key names"
    if not found:
        raise ConfigError(
            f"no problem of {TRAIN} has a text in {columns}, which hint.source={settings.source} "
            f"needs; add them or choose trainer.method={BASELINE}"
        )
    return found


def _check_requests(
    problems: Sequence[Problem],
    model: Model,
    *,
    hints: tuple[HintSettings, Texts],
    lengths: Lengths,
    of: str,
) -> None:
    settings, texts = hints
    requests = [hint_request(texts, problem.text, problem.solution) for problem in problems]
    model.check_template(requests[0])
    sizes = model.count_tokens(requests)
    lengths.longest_request = max(sizes)
    over = sum(size > model.context - settings.max_tokens for size in sizes)
    if over == len(sizes):
        raise ConfigError(
            f"hint.max_tokens={settings.max_tokens}: no hint request fits, the shortest has "
            f"{min(sizes)} tokens and the model's context is {model.context} ({MAX_MODEL_LEN}); "
            f"lower hint.max_tokens"
        )
    if settings.max_tokens < _HINT_TOKENS and (model.num_parameters or _TAUGHT) >= _TAUGHT:
        lengths.warnings.append(
            f"hint.max_tokens={settings.max_tokens}: a reply with hints takes most models "
            f"{_HINT_TOKENS} tokens and more, and one that is cut has none; raise it"
        )
    if over:
        longest = problems[sizes.index(max(sizes))].id
        lengths.warnings.append(
            f"{over} {of} hint requests leave fewer than hint.max_tokens={settings.max_tokens} of "
            f"the context of {model.context} tokens: their hints may be cut or missing (the "
            f"longest is that of {longest!r}, {max(sizes)} tokens)"
        )
