"""Check the data: contract, chat template, lengths in tokens, and room for a method's turns."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.model import MAX_MODEL_LEN, Model
from recipe.hint.engine import Engine
from recipe.hint.hints.base import TeacherSampling, WrittenText
from recipe.hint.hints.self_generated import hint_request
from recipe.hint.methods import BASELINE, Method
from recipe.hint.prompt import Message, Texts, with_hint
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import HintStatus, ProblemState, Response
from recipe.hint.settings import HintSettings
from recipe.hint.turns import RoleSampling
from recipe.problems.checks import odd_golds
from recipe.problems.columns import ProblemFile, check_there, read_file
from recipe.problems.schema import Problem, complete_sets
from recipe.run.config import PROMPT_LENGTH, ROLLOUT, check, files_of, setting
from recipe.run.errors import DataError
from recipe.run.paths import TRAIN
from recipe.verify.answer import unasked_warning
from recipe.verify.schema import Verdict

_SAMPLE = 20_000  # of more problems, lengths of hint requests are counted in a sample
_HINT_ROOM = 32  # a hint shorter than this many tokens says little
_MARK = re.compile("\x01([0-9]+)\x02")  # a response and its tokens: no template strips it


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
    check(
        not missing,
        f"not set: {', '.join(missing)}; give {' '.join(f'{name}=PATH' for name in missing)}, "
        f"or hardware=laptop to run the embedded model and problems on the CPU",
    )
    # Before a model is looked for, which may be on the hub.
    for name in names:
        for path in files_of(config, name) if name.startswith("data.") else ():
            check_there(path)


def read_files(config: DictConfig, name: str, *, by_source: bool = False) -> list[ProblemFile]:
    """Read the files of a setting; an id is unique over all of them, or in its data source.

    Raises:
        DataError: Naming the row and what is wrong with it.
    """
    key = setting(config, "data.solution_key") or ""
    files = [read_file(path, key) for path in files_of(config, name)]
    first: dict[object, str] = {}
    for number, file in enumerate(files):
        for row, problem in enumerate(file.problems):
            place = f"{file.path}: row {row}"
            source = problem.data_source if by_source else ""
            other = first.setdefault((source, problem.id), f"{number} {place}")
            if other != f"{number} {place}":
                raise DataError(
                    f"{other.partition(' ')[2]} and {place} have the same id {problem.id!r} "
                    f"(`extra_info.index`); ids must be unique over all of {name}"
                )
    return files


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
    check(
        prompt + response <= model.context,
        f"{PROMPT_LENGTH}={prompt} + data.max_response_length={response} = {prompt + response} "
        f"tokens, above the context of {model.context} ({MAX_MODEL_LEN}, or the model's positions)",
    )
    lengths = Lengths(warnings=list(model.warnings))
    for file in (*train, *val):
        lengths.warnings += _file_warnings(config, file)
        model.check_template(file.problems[0].messages)
        num_dropped = _check_prompts(config, file, model, lengths)
        lengths.num_dropped += num_dropped if file in train else 0
    if hints is not None:
        _check_hints(config, train, model, hints, lengths)
    lengths.warnings = list(dict.fromkeys(lengths.warnings))
    return lengths


def _file_warnings(config: DictConfig, file: ProblemFile) -> list[str]:
    golds = [each.answer if each.kind == "maths" else "" for each in file.problems]
    places = [f"row {number}" for number in range(len(golds))]
    found = [f"{file.path}: {each}" for each in odd_golds(golds, places)]
    if file.reserved:
        columns = ", ".join(f"`{name}`" for name in file.reserved)
        found.append(f"{file.path}: verl's batches have fields of these names: {columns} stay out")
    if not setting(config, "reward.custom_reward_function.path"):
        prompts = [each.messages for each in file.problems if each.kind != "program"]
        unasked = unasked_warning(prompts, setting(config, "hint.verify.answer_format"))
        found += [f"{file.path}: {unasked}"] if unasked else []
    return found


def _check_prompts(config: DictConfig, file: ProblemFile, model: Model, lengths: Lengths) -> int:
    """Check that prompts fit; return how many verl drops, which an evaluation never does."""
    # Of equal ones the first, by which verl drops rows.
    name = min("data.max_prompt_length", PROMPT_LENGTH, key=lambda name: setting(config, name))
    limit = setting(config, name)
    counts = model.count_tokens([problem.messages for problem in file.problems])
    too_long = [row for row, count in enumerate(counts) if count > limit]
    is_training = not setting(config, "trainer.eval_only")
    filters = is_training and setting(config, "data.filter_overlong_prompts")
    for row, problem in enumerate(file.problems if filters and model.folds_system else ()):
        check(
            problem.messages[0]["role"] != "system",
            f"data.filter_overlong_prompts=true: {file.path}: row {row} has a system turn, which "
            f"the chat template refuses: verl's filter would drop the row without a word",
        )
    if too_long and not (filters and name != PROMPT_LENGTH):
        raise DataError(
            f"{file.path}: row {too_long[0]}: the prompt has {counts[too_long[0]]} tokens, "
            f"{name}={limit} (too long: {len(too_long)} of {len(counts)} rows, up to {max(counts)} "
            f"tokens); raise it or drop the rows"
        )
    if too_long:
        lengths.warnings.append(
            f"{file.path}: {len(too_long)} prompts above {name}={limit} are dropped "
            f"(data.filter_overlong_prompts=true)"
        )
    fitting = (count for count in counts if count <= limit)
    lengths.longest_prompt = max(lengths.longest_prompt, max(fitting, default=0))
    return len(too_long)


def _check_hints(
    config: DictConfig,
    train: Sequence[ProblemFile],
    model: Model,
    hints: tuple[HintSettings, Texts],
    lengths: Lengths,
) -> None:
    """Check that problems have what hints are made of, and room for them."""
    settings, texts = hints
    every = [problem for file in train for problem in file.problems]
    is_column = settings.source == "dataset"
    problems = [
        each
        for each in every
        if (all(complete_sets(each.hints, settings.max_level)) if is_column else each.solution)
    ]
    columns = f"`hint_level_1` to `hint_level_{settings.max_level}`" if is_column else "`solution`"
    needs = f"what hint.source={settings.source} needs: {columns} (docs/data.md)"
    check(
        problems,
        f"no problem of {TRAIN} has {needs}; add them or choose trainer.method={BASELINE}",
    )
    if 2 * len(problems) < len(every):
        lengths.warnings.append(
            f"{len(problems)} of {len(every)} training problems have {needs}; the others train "
            f"without hints"
        )
    total = len(problems)
    problems = random.Random(settings.seed).sample(problems, min(total, _SAMPLE))
    if settings.source not in ("dataset", "solution_prefix"):
        requests = [hint_request(texts, each.text, each.solution) for each in problems]
        model.check_template(requests[0])
        sizes, room = model.count_tokens(requests), model.context - settings.max_tokens
        lengths.longest_request = max(sizes)
        check(
            min(sizes) <= room,
            f"hint.max_tokens={settings.max_tokens}: no hint request fits, the shortest has "
            f"{min(sizes)} tokens and the model's context is {model.context} ({MAX_MODEL_LEN})",
        )
        if over := sum(size > room for size in sizes):
            lengths.warnings.append(
                f"{over} of {total} hint requests (up to {max(sizes)} tokens) leave fewer than "
                f"hint.max_tokens={settings.max_tokens} of the context of {model.context} tokens: "
                f"their hints may be cut or missing"
            )
    style = settings.style
    sizes = model.count_tokens(
        [
            with_hint(each.messages, "", texts, style)
            if style and style != "prefill"
            else each.messages
            for each in problems
        ]
    )
    limit = setting(config, PROMPT_LENGTH)
    if short := sum(limit - size < _HINT_ROOM for size in sizes):
        lengths.warnings.append(
            f"{short} of {total} prompts leave fewer than {_HINT_ROOM} tokens for a hint in "
            f"rollout.prompt_length={limit}"
        )


def check_rows(
    config: DictConfig, method: Method, model: Model, files: Sequence[ProblemFile]
) -> None:
    """Check what the method trains on or continues: solutions, first attempts, thoughts.

    Raises:
        DataError: Naming the first row that lacks it, or where it is longer than a response.
        ConfigError: If the template opens the thoughts that the text must open.
    """
    limit, who = setting(config, "data.max_response_length"), config.trainer.method
    count = method.needs.first_attempts
    if method.needs.solution or method.needs.closed_prompt:
        text = model.renderer.text(files[0].problems[0].messages)
        check(
            not text.rstrip().endswith("<think>"),
            f"trainer.method={who} needs a chat template that does not end the prompt with "
            f"<think>, for the response or the solution opens it; set "
            f"actor_rollout_ref.model.custom_chat_template",
        )
    for file in files:
        for row, problem in enumerate(file.problems):
            needed = {"solution": [problem.solution]} if method.needs.solution else {}
            if count:
                needed["first_attempts"] = [*problem.first_attempts[:count], *[""] * count][:count]
            for column, texts in needed.items():
                if fault := _fault_of(model, texts, limit):
                    raise DataError(
                        f"{file.path}: the column `{column}` of row {row} of {TRAIN} {fault}, and "
                        f"trainer.method={who} needs {len(texts)} there as a response; drop the "
                        f"row, or raise data.max_response_length"
                    )


def _fault_of(model: Model, texts: Sequence[str], limit: int) -> str:
    for text in texts:
        if not text.strip():
            return "is missing or blank"
        if (length := len(model.renderer.response(text))) > limit:
            return f"has {length} tokens, above data.max_response_length={limit}"
    return ""


def check_conversations(
    config: DictConfig, method: Method, model: Model, texts: Texts, files: Sequence[ProblemFile]
) -> None:
    """Check that the longest conversation fits a prompt, and that the template takes its turns.

    Raises:
        ConfigError: If a later prompt could be above ``rollout.prompt_length``.
    """
    if not method.is_multi_turn:
        return
    problems = [problem for file in files for problem in file.problems]
    limit = setting(config, PROMPT_LENGTH)
    listener = _Listener(setting(config, f"{ROLLOUT}.response_length"))
    counts = model.count_tokens([problem.messages for problem in problems])
    if setting(config, "data.filter_overlong_prompts"):  # those above it are dropped
        most = setting(config, "data.max_prompt_length")
        counts = [count if count <= most else 0 for count in counts]
    # Instructions are the same for all problems: the longest question makes the longest prompt.
    longest = problems[max(range(len(problems)), key=counts.__getitem__)]
    settings = HintSettings(samples=NO_SAMPLES)
    parts = RolloutParts(method.validation(), None, listener, settings, texts, listener)
    asyncio.run(PromptRollout(longest, ProblemState(), parts).run("preflight", 0))
    for messages in listener.heard:
        model.check_template(_unmarked(messages, "x"))
    plain = model.count_tokens([_unmarked(messages, "") for messages in listener.heard])
    rooms = [
        sum(int(tokens) for turn in messages for tokens in _MARK.findall(turn["content"]))
        for messages in listener.heard
    ]
    total, room = max((a + b, b) for a, b in zip(plain, rooms, strict=True))
    check(
        total <= limit,
        f"{PROMPT_LENGTH}={limit} does not hold every turn of trainer.method="
        f"{config.trainer.method}: a later prompt may have {total - room} tokens and {room} of "
        f"earlier responses (data.max_response_length); give {PROMPT_LENGTH}={total} or more",
    )


class _Listener(Engine):
    """An engine whose responses are marks of their length; it keeps what it is asked to render."""

    group_size = 1

    def __init__(self, response_length: int) -> None:
        self.sampling = TeacherSampling(max_tokens=response_length)
        self.heard: list[Sequence[Message]] = []

    def render(self, messages: Sequence[Message], **_: object) -> list[int]:
        self.heard.append(messages)
        return []

    async def sample_each(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        rows: range,
        sampling: RoleSampling | None = None,
    ) -> list[list[Response]]:
        most = self.sampling.max_tokens
        own = sampling.overrides(most) if sampling else {}
        mark = f"\x01{int(own.get('max_tokens', most))}\x02"
        return [[Response([0], [0.0], mark, is_truncated=False)] for _ in prompts]

    async def reply(
        self, messages: Sequence[Message], sampling: TeacherSampling
    ) -> WrittenText | HintStatus:
        return WrittenText(f"\x01{sampling.max_tokens}\x02", 0)

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        return [Verdict(0.0, "wrong")] * len(responses_G)


def _unmarked(messages: Sequence[Message], text: str) -> list[Message]:
    """Return a conversation with ``text`` for each of its responses."""
    return [turn | {"content": _MARK.sub(text, turn["content"])} for turn in messages]
