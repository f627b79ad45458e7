"""Check the model and the data: weights, template, lengths in tokens, room for hints and turns."""

from __future__ import annotations

import asyncio
import functools
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from omegaconf import DictConfig, OmegaConf

from recipe.hint.adapter.chat_template import (
    BREAK,
    Renderer,
    end_of_turn,
    refuses_system,
    unfixed_date,
)
from recipe.hint.engine import Engine
from recipe.hint.hints.base import TeacherSampling, WrittenText
from recipe.hint.hints.self_generated import hint_request
from recipe.hint.methods import BASELINE, Method
from recipe.hint.prompt import Message, Texts, with_hint
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import HintStatus, ProblemState, Response
from recipe.hint.settings import HintSettings
from recipe.problems.checks import odd_golds
from recipe.problems.columns import ProblemFile, check_there, read_file
from recipe.problems.schema import Problem, complete_sets
from recipe.run.config import MODEL_NODE, PROMPT_LENGTH, ROLLOUT, check, files_of, setting
from recipe.run.errors import ConfigError, DataError, one_line
from recipe.run.paths import TRAIN, model_folder
from recipe.verify.answer import unasked_warning
from recipe.verify.schema import Verdict

MODEL, MAX_MODEL_LEN = f"{MODEL_NODE}.path", f"{ROLLOUT}.max_model_len"
_TEMPLATE = f"{MODEL_NODE}.custom_chat_template"
_OPTIONS = "data.apply_chat_template_kwargs"
_LIMIT, _FILTERS = "data.max_prompt_length", "data.filter_overlong_prompts"
_CHUNK = 1024
_HINT_ROOM = 32  # a hint shorter than this many tokens says little
_MARK = re.compile("\x01([0-9]+)\x02")  # a response and its tokens: no template strips it


@dataclass(frozen=True)
class Model:
    """What the checks of the data need of a model; ``context`` is its longest sequence, in tokens.

    ``num_parameters`` is unknown for weights that are not there yet or not in safetensors.
    """

    path: str
    tokenizer: Any
    num_parameters: int | None
    context: int
    template_options: dict[str, Any]
    warnings: tuple[str, ...] = ()

    @functools.cached_property
    def folds_system(self) -> bool:
        return refuses_system(self.tokenizer, self.template_options)

    @functools.cached_property
    def renderer(self) -> Renderer:
        return Renderer(self.tokenizer, 0, self.folds_system, self.template_options)

    def count_tokens(self, conversations: Sequence[Sequence[Message]]) -> list[int]:
        """Count the tokens of each conversation as it is sampled from."""
        counts: list[int] = []
        for start in range(0, len(conversations), _CHUNK):
            chunk = conversations[start : start + _CHUNK]
            pieces = [self._render(messages).split(BREAK) for messages in chunk]
            flat = [piece for each in pieces for piece in each]
            encoded = self.tokenizer(flat, add_special_tokens=False, verbose=False)
            sizes = map(len, encoded["input_ids"])
            counts += [sum(itertools.islice(sizes, len(each))) for each in pieces]
        return counts

    def check_template(self, messages: Sequence[Message]) -> None:
        """Make sure that every turn of a conversation is in what the model will see."""
        text = self._render(messages).replace(BREAK, "")
        for turn in messages:
            check(
                turn["content"].replace(BREAK, "\ufffd").strip() in text,
                f"{MODEL}={self.path}: the chat template drops the {turn['role']} turn "
                f"{turn['content'][:40]!r}; give another with {_TEMPLATE}",
            )

    def _render(self, messages: Sequence[Message]) -> str:
        try:
            return self.renderer.text(messages)
        except (TemplateError, ValueError, TypeError, KeyError) as error:
            roles = ", ".join(turn["role"] for turn in messages)
            raise ConfigError(
                f"{MODEL}={self.path}: the chat template refuses a conversation of {roles}: "
                f"{one_line(error, 200)}; give another with {_TEMPLATE}"
            ) from error


def load_model(config: DictConfig, *, has_weights: bool = True) -> Model:
    """Read everything but the weights, of which, if they are there, only the headers."""
    path, trust = setting(config, MODEL), bool(setting(config, f"{MODEL_NODE}.trust_remote_code"))
    folder = model_folder(str(path)) or path
    is_of_hub = str(path).count("/") == 1 and not str(path).startswith((".", "/", "~"))
    if folder == path and not is_of_hub and not Path(path).is_dir():
        raise ConfigError(f"{MODEL}={path}: no such folder of a model")
    context = _context(config, folder, trust)
    sizes = list(_weight_sizes(Path(folder))) if has_weights and Path(folder).is_dir() else []
    source = setting(config, f"{MODEL_NODE}.tokenizer_path") or folder
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=trust)
    except Exception as error:  # noqa: BLE001 - tokenizers raises bare Exception on a broken file
        raise ConfigError(
            f"{MODEL}={path}: the tokenizer cannot be loaded: {one_line(error, 200)}"
        ) from error
    tokenizer.chat_template = setting(config, _TEMPLATE) or tokenizer.chat_template
    told = f"{MODEL}={path}: the tokenizer has no"
    check(tokenizer.chat_template, f"{told} chat template; set {_TEMPLATE}")
    check(tokenizer.eos_token_id is not None, f"{told} eos token: no response would ever end")
    options = dict(setting(config, _OPTIONS) or {})
    warnings = tuple(_warnings(tokenizer, options, str(folder), trust))
    return Model(path, tokenizer, sum(sizes) or None, context, options, warnings)


def _context(config: DictConfig, folder: Path | str, trust: bool) -> int:
    """Return the longest sequence of the model as verl overrides its configuration."""
    from transformers import AutoConfig
    from verl.utils.model import update_model_config
    from verl.workers.rollout.utils import get_max_position_embeddings

    node: Any = setting(config, f"{MODEL_NODE}.override_config") or {}
    overrides: Any = OmegaConf.to_container(node) if OmegaConf.is_config(node) else node
    try:
        found = AutoConfig.from_pretrained(folder, trust_remote_code=trust)
        update_model_config(found, overrides.get("model_config", overrides))
        longest = get_max_position_embeddings(found)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"{MODEL}={folder}: {folder}/config.json cannot be read, or not be changed by "
            f"{MODEL_NODE}.override_config={overrides} ({one_line(error, 200)})"
        ) from error
    given = setting(config, MAX_MODEL_LEN) or longest
    check(given <= longest, f"{MAX_MODEL_LEN}={given} is above the {longest} positions of {folder}")
    return given


def _weight_sizes(folder: Path) -> Iterator[int]:
    """Yield how many numbers each weight has, by the headers of safetensors files."""
    from safetensors import SafetensorError, safe_open

    files = sorted(folder.glob("*.safetensors"))
    is_there = files or list(folder.glob("*.bin"))
    check(is_there, f"{MODEL}={folder}: no weights (*.safetensors or *.bin)")
    for file in files:
        try:
            with safe_open(file, framework="np") as weights:
                for key in weights.keys():
                    yield math.prod(weights.get_slice(key).get_shape())
        except (OSError, SafetensorError) as error:
            told = f"{file.name} is not whole ({one_line(error, 200)})"
            raise ConfigError(f"{MODEL}={folder}: {told}") from error


def _warnings(tokenizer: Any, options: dict[str, Any], place: str, trust: bool) -> Iterator[str]:
    """Yield what a chat template and its stops do that a run should know of."""
    from verl.utils.model import get_generation_config

    if refuses_system(tokenizer, options):
        yield "the chat template refuses a system turn: such texts stand before the first user's"
    if unfixed_date(tokenizer, options):
        yield (
            "the chat template writes today's date into every prompt, so a run that resumes "
            f"tomorrow sees other prompts; fix it with +{_OPTIONS}.date_string='26 Jul 2024'"
        )
    ids = getattr(get_generation_config(place, trust_remote_code=trust), "eos_token_id", None)
    stops = {tokenizer.eos_token_id, *(ids if isinstance(ids, list) else [ids])}
    end = end_of_turn(tokenizer, options)
    if end is not None and end not in stops:
        yield (
            f"the chat template ends a response with {tokenizer.decode([end])!r}, at which vLLM "
            f"does not stop: add {end} to eos_token_id in {place}/generation_config.json"
        )


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
    """Read the files of a setting; an id is unique over all of them, or in its data source."""
    key = setting(config, "data.solution_key") or ""
    files = [read_file(path, key) for path in files_of(config, name)]
    first: dict[object, str] = {}
    for file in files:
        for row, problem in enumerate(file.problems):
            source, place = problem.data_source if by_source else "", f"{file.path}: row {row}"
            if (source, problem.id) in first:
                raise DataError(
                    f"{first[source, problem.id]} and {place} have the same id {problem.id!r} "
                    f"(`extra_info.index`); ids must be unique over all of {name}"
                )
            first[source, problem.id] = place
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

    An evaluation has no ``train``, and a method without hints no ``hints``: settings and texts.
    """
    prompt, response = setting(config, PROMPT_LENGTH), setting(config, f"{ROLLOUT}.response_length")
    check(
        prompt + response <= model.context,
        f"{PROMPT_LENGTH}={prompt} + data.max_response_length={response} = {prompt + response} "
        f"tokens, above the context of {model.context} ({MAX_MODEL_LEN}, or the model's positions)",
    )
    lengths = Lengths(warnings=list(model.warnings))
    for file in (*train, *val):
        golds = [each.answer if each.kind == "maths" else "" for each in file.problems]
        odd = odd_golds(golds, [f"row {number}" for number in range(len(golds))])
        lengths.warnings += [f"{file.path}: {each}" for each in odd]
        if not setting(config, "reward.custom_reward_function.path"):
            prompts = [each.messages for each in file.problems if each.kind != "program"]
            unasked = unasked_warning(prompts, setting(config, "hint.verify.answer_format"))
            lengths.warnings += [f"{file.path}: {unasked}"] if unasked else []
        model.check_template(file.problems[0].messages)
        num_dropped = _check_prompts(config, file, model, lengths)
        lengths.num_dropped += num_dropped if file in train else 0
    if hints is not None:
        problems = [problem for file in train for problem in file.problems]
        _check_hints(setting(config, PROMPT_LENGTH), problems, model, *hints, lengths)
    lengths.warnings = list(dict.fromkeys(lengths.warnings))
    return lengths


def _check_prompts(config: DictConfig, file: ProblemFile, model: Model, lengths: Lengths) -> int:
    """Check that prompts fit; return how many verl drops, which an evaluation never does."""
    # Of equal ones the first, by which verl drops rows.
    name = min(_LIMIT, PROMPT_LENGTH, key=lambda name: setting(config, name))
    limit = setting(config, name)
    counts = model.count_tokens([problem.messages for problem in file.problems])
    too_long = [row for row, count in enumerate(counts) if count > limit]
    filters = setting(config, _FILTERS) and not setting(config, "trainer.eval_only")
    check(
        not (filters and model.folds_system)
        or all(problem.messages[0]["role"] != "system" for problem in file.problems),
        f"{_FILTERS}=true: {file.path} has system turns, which the chat template refuses: verl's "
        f"filter would drop such rows without a word",
    )
    if too_long and not (filters and name == _LIMIT):
        raise DataError(
            f"{file.path}: row {too_long[0]}: the prompt has {counts[too_long[0]]} tokens, "
            f"{name}={limit} (too long: {len(too_long)} of {len(counts)} rows, up to {max(counts)} "
            f"tokens); raise it or drop the rows"
        )
    if too_long:
        told = f"{len(too_long)} prompts above {name}={limit} are dropped ({_FILTERS}=true)"
        lengths.warnings.append(f"{file.path}: {told}")
    fitting = (count for count in counts if count <= limit)
    lengths.longest_prompt = max(lengths.longest_prompt, max(fitting, default=0))
    return len(too_long)


def _check_hints(
    limit: int,
    every: Sequence[Problem],
    model: Model,
    settings: HintSettings,
    texts: Texts,
    lengths: Lengths,
) -> None:
    """Check that problems have what hints are made of, and room for them in a prompt's tokens."""
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
    total, found = len(problems), lengths.warnings
    if 2 * total < len(every):
        lacking = f"{total} of {len(every)} training problems have {needs}"
        found.append(f"{lacking}; the others train without hints")
    if settings.source not in ("dataset", "solution_prefix"):
        requests = [hint_request(texts, each.text, each.solution) for each in problems]
        model.check_template(requests[0])
        sizes, room = model.count_tokens(requests), model.context - settings.max_tokens
        lengths.longest_request, who = max(sizes), f"hint.max_tokens={settings.max_tokens}"
        check(
            min(sizes) <= room,
            f"{who}: no hint request fits, the shortest has {min(sizes)} tokens and the model's "
            f"context is {model.context} ({MAX_MODEL_LEN})",
        )
        if over := sum(size > room for size in sizes):
            found.append(
                f"{over} of {total} hint requests (up to {max(sizes)} tokens) leave fewer than "
                f"{who} of the context of {model.context} tokens: hints may be cut or missing"
            )
    style = settings.style if settings.style != "prefill" else None
    hinted = [
        with_hint(each.messages, "", texts, style) if style else each.messages for each in problems
    ]
    if short := sum(limit - size < _HINT_ROOM for size in model.count_tokens(hinted)):
        found.append(
            f"{short} of {total} prompts leave fewer than {_HINT_ROOM} tokens for a hint in "
            f"rollout.prompt_length={limit}"
        )


def check_rows(
    config: DictConfig, method: Method, model: Model, files: Sequence[ProblemFile]
) -> None:
    """Check what the method trains on or continues: solutions, first attempts, thoughts."""
    limit, who = setting(config, "data.max_response_length"), config.trainer.method
    count = method.needs.first_attempts
    if method.needs.solution or method.needs.closed_prompt:
        text = model.renderer.text(files[0].problems[0].messages)
        check(
            not text.rstrip().endswith("<think>"),
            f"trainer.method={who} needs a chat template that does not end the prompt with "
            f"<think>, for the response or the solution opens it; set {_TEMPLATE}",
        )
    for file in files:
        for row, problem in enumerate(file.problems):
            needed = {"solution": [problem.solution]} if method.needs.solution else {}
            if count:
                needed["first_attempts"] = [*problem.first_attempts[:count], *[""] * count][:count]
            for column, texts in needed.items():
                lengths = [len(model.renderer.response(text)) for text in texts if text.strip()]
                if len(lengths) == len(texts) and max(lengths) <= limit:
                    continue
                fault = f"has {max(lengths, default=0)} tokens, above data.max_response_length"
                fault = "is missing or blank" if len(lengths) < len(texts) else f"{fault}={limit}"
                raise DataError(
                    f"{file.path}: the column `{column}` of row {row} of {TRAIN} {fault}, and "
                    f"trainer.method={who} needs {len(texts)} there as a response; drop the row, "
                    f"or raise data.max_response_length"
                )


def check_conversations(
    config: DictConfig, method: Method, model: Model, texts: Texts, files: Sequence[ProblemFile]
) -> None:
    """Check that the longest conversation fits a prompt, and that the template takes its turns."""
    if not method.is_multi_turn:
        return
    problems = [problem for file in files for problem in file.problems]
    limit = setting(config, PROMPT_LENGTH)
    listener = _Listener(setting(config, f"{ROLLOUT}.response_length"))
    counts = model.count_tokens([problem.messages for problem in problems])
    if setting(config, _FILTERS):  # those above it are dropped
        counts = [count if count <= setting(config, _LIMIT) else 0 for count in counts]
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
        max_tokens: int = 0,
    ) -> list[list[Response]]:
        most = self.sampling.max_tokens
        mark = f"\x01{min(max_tokens or most, most)}\x02"
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
