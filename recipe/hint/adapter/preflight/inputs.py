"""Check the model and the data: weights, template, lengths in tokens, room for hints and turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from omegaconf import DictConfig, OmegaConf

from recipe.hint.adapter.chat_template import BREAK, Renderer, end_of_turn, refuses_system
from recipe.hint.hints.self_generated import hint_request
from recipe.hint.methods import BASELINE, Method
from recipe.hint.prompt import Message, Texts
from recipe.hint.settings import HintSettings
from recipe.problems.columns import ProblemFile, read_file
from recipe.problems.prepare import PROBE_LIMIT_S
from recipe.problems.schema import Problem, complete_sets
from recipe.run.config import FUNCTION, MODEL_NODE, PROMPT_LENGTH, ROLLOUT, check, files_of, setting
from recipe.run.errors import ConfigError, DataError, one_line
from recipe.run.paths import TRAIN, local_path
from recipe.verify.schema import unasked_warning

MODEL, MAX_MODEL_LEN = f"{MODEL_NODE}.path", f"{ROLLOUT}.max_model_len"
_TEMPLATE = f"{MODEL_NODE}.custom_chat_template"
_OPTIONS = "data.apply_chat_template_kwargs"
_LIMIT, _FILTERS = "data.max_prompt_length", "data.filter_overlong_prompts"


@dataclass(frozen=True)
class Model:
    """What the checks need of a model; ``context``: its longest sequence, in tokens."""

    path: str
    renderer: Renderer
    context: int
    config: Any  # transformers'
    warnings: tuple[str, ...] = ()

    def count_tokens(self, conversations: Sequence[Sequence[Message]]) -> list[int]:
        """Count the tokens of each conversation as it is sampled from."""
        return [len(self.renderer.render(messages)) for messages in conversations]

    def check_template(self, messages: Sequence[Message]) -> None:
        """Make sure that every turn of a conversation is in what the model will see."""
        told, roles = f"{MODEL}={self.path}: the chat template", [turn["role"] for turn in messages]
        try:
            text = self.renderer.text(messages).replace(BREAK, "")
        except (TemplateError, ValueError, TypeError, KeyError) as error:
            raise ConfigError(
                f"{told} refuses a conversation of {', '.join(roles)}: {one_line(error, 200)}; "
                f"give another with {_TEMPLATE}"
            ) from error
        for turn in messages:
            is_there = turn["content"].replace(BREAK, "\ufffd").strip() in text
            check(is_there, f"{told} drops the {turn['role']} turn; give another with {_TEMPLATE}")


def load_model(config: DictConfig, *, has_weights: bool = True) -> Model:
    """Read everything but the weights, which have to be there unless they are merged later."""
    import huggingface_hub as hub
    from transformers import AutoConfig, AutoTokenizer
    from verl.utils.model import update_model_config
    from verl.workers.rollout.utils import get_max_position_embeddings

    path, trust = setting(config, MODEL), bool(setting(config, f"{MODEL_NODE}.trust_remote_code"))
    folder = local_path(str(path))
    node: Any = OmegaConf.create(setting(config, f"{MODEL_NODE}.override_config") or {})
    overrides: Any = OmegaConf.to_container(node)
    source = setting(config, f"{MODEL_NODE}.tokenizer_path") or folder
    is_here = Path(folder).exists()  # else ask the hub once: transformers does five times a file
    try:
        if not is_here and not isinstance(hub.try_to_load_from_cache(path, "config.json"), str):
            hub.get_hf_file_metadata(hub.hf_hub_url(path, "config.json"), timeout=PROBE_LIMIT_S)
        found = AutoConfig.from_pretrained(folder, trust_remote_code=trust)
        update_model_config(found, overrides.get("model_config", overrides))  # as verl does
        longest = get_max_position_embeddings(found)
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=trust)
    except Exception as error:  # noqa: BLE001 - tokenizers raises bare Exception on a broken file
        told = f"{MODEL}={path} {'' if is_here else 'is no folder here and '}cannot be loaded"
        told += f", with {MODEL_NODE}.override_config={overrides}" if overrides else ""
        raise ConfigError(f"{told}: {one_line(error, 300)}") from error
    files = list(Path(folder).glob("*")) if has_weights else []
    is_there = any(file.suffix in (".safetensors", ".bin") for file in files)
    check(is_there or not files, f"{MODEL}={path}: no weights (*.safetensors or *.bin)")
    context = setting(config, MAX_MODEL_LEN) or longest
    told = f"{MAX_MODEL_LEN}={context} is above the {longest} positions of {folder}"
    check(context <= longest, told)
    tokenizer.chat_template = setting(config, _TEMPLATE) or tokenizer.chat_template
    told = f"{MODEL}={path}: the tokenizer has no"
    check(tokenizer.chat_template, f"{told} chat template; set {_TEMPLATE}")
    check(tokenizer.eos_token_id is not None, f"{told} eos token: no response would ever end")
    options = dict(setting(config, _OPTIONS) or {})
    renderer = Renderer(tokenizer, 0, refuses_system(tokenizer, options), options)
    return Model(path, renderer, context, found, _stop_warnings(renderer, str(folder), trust))


def _stop_warnings(renderer: Renderer, place: str, trust: bool) -> tuple[str, ...]:
    """Say so if vLLM does not stop where the chat template ends a response.

    Raises:
        ConfigError: The tokenizer's eos token begins a turn.
    """
    from verl.utils.model import get_generation_config

    tokenizer, options = renderer.tokenizer, renderer.options
    end = end_of_turn(tokenizer, options)
    if end is None:
        return ()
    opening = renderer.text([{"role": "user", "content": "Question"}]).rpartition("Question")[2]
    begins = tokenizer(opening, add_special_tokens=False)["input_ids"]
    check(
        end == tokenizer.eos_token_id or tokenizer.eos_token_id not in begins,
        f"{MODEL}={place}: the chat template begins a turn with the tokenizer's eos token "
        f"{tokenizer.eos_token!r}; expected what ends one, {tokenizer.decode([end])!r}: "
        f"correct eos_token in tokenizer_config.json; `hint prepare model` converts GGUF files",
    )
    ids = getattr(get_generation_config(place, trust_remote_code=trust), "eos_token_id", None)
    stops = {tokenizer.eos_token_id, *(ids if isinstance(ids, list) else [ids])}
    if end in stops:
        return ()
    return (
        f"the chat template ends a response with {tokenizer.decode([end])!r}, at which vLLM does "
        f"not stop: add {end} to eos_token_id in {place}/generation_config.json",
    )


@dataclass
class Lengths:
    """What was measured, in tokens, and what a person should know before the start."""

    longest_prompt: int = 0
    num_dropped: int = 0  # training problems
    warnings: list[str] = field(default_factory=list)


def check_given(config: DictConfig, names: Sequence[str]) -> None:
    missing = [name for name in names if not files_of(config, name)]
    check(
        not missing,
        f"not set: {', '.join(missing)}; give {' '.join(f'{name}=PATH' for name in missing)}, "
        f"or hardware=laptop to run the embedded model and problems on the CPU",
    )


def read_files(config: DictConfig, name: str, *, by_source: bool = False) -> list[ProblemFile]:
    """Read the files of a setting; an id is unique over all of them, or in its data source."""
    key = setting(config, "data.solution_key") or ""
    files = [read_file(path, key) for path in files_of(config, name)]
    first: dict[object, str] = {}
    for file in files:
        for row, problem in enumerate(file.problems):
            one, place = (by_source and problem.data_source, problem.id), f"{file.path}: row {row}"
            if (other := first.setdefault(one, place)) != place:
                raise DataError(
                    f"{other} and {place} have the same id {problem.id!r} (`extra_info.index`); "
                    f"ids must be unique over all of {name}"
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
    """Check prompts and hint requests against the settings.

    An evaluation has no ``train``, and a method without hints no ``hints``: settings and texts.
    """
    prompt, response = setting(config, PROMPT_LENGTH), setting(config, f"{ROLLOUT}.response_length")
    check(
        prompt + response <= model.context,
        f"{PROMPT_LENGTH}={prompt} + data.max_response_length={response} = {prompt + response} "
        f"tokens, above the context of {model.context} ({MAX_MODEL_LEN}, or the model's positions)",
    )
    lengths = Lengths(warnings=list(model.warnings))
    for file in (*train, *(each for each in val if each not in train)):
        if not setting(config, f"{FUNCTION}.path"):
            prompts = [each.messages for each in file.problems if each.kind != "program"]
            unasked = unasked_warning(prompts, setting(config, "hint.verify.answer_format"))
            lengths.warnings += [f"{file.path}: {unasked}"] if unasked else []
        model.check_template(file.problems[0].messages)
        num_dropped = _check_prompts(config, file, model, lengths)
        lengths.num_dropped += num_dropped if file in train else 0
    if hints is not None:
        problems = [problem for file in train for problem in file.problems]
        _check_hints(problems, model, *hints)
    return lengths


def _check_prompts(config: DictConfig, file: ProblemFile, model: Model, lengths: Lengths) -> int:
    """Check that prompts fit; return how many verl drops, which an evaluation never does."""
    # Of equal ones the first, by which verl drops rows.
    name = min(_LIMIT, PROMPT_LENGTH, key=lambda name: setting(config, name))
    limit = setting(config, name)
    counts = model.count_tokens([problem.messages for problem in file.problems])
    too_long = [row for row, count in enumerate(counts) if count > limit]
    filters = setting(config, _FILTERS) and not setting(config, "trainer.eval_only")
    told = f"{len(too_long)} of {len(counts)} prompts are above {name}={limit} tokens"
    if too_long and not (filters and name == _LIMIT):
        low = [each for each in (_LIMIT, PROMPT_LENGTH) if setting(config, each) < max(counts)]
        raise DataError(
            f"{file.path}: row {too_long[0]}: {told}, up to {max(counts)}; raise "
            f"{' and '.join(low)}, drop the rows or give {_FILTERS}=true"
        )
    lengths.warnings += [f"{file.path}: {told}, and are dropped"] if too_long else []
    lengths.longest_prompt = max([lengths.longest_prompt, *(n for n in counts if n <= limit)])
    return len(too_long)


def _check_hints(
    every: Sequence[Problem], model: Model, settings: HintSettings, texts: Texts
) -> None:
    """Check that problems have what hints are made of, and that a request for one fits."""
    is_column = settings.source == "dataset"
    problems = [
        each
        for each in every
        if (all(complete_sets(each.hints, settings.max_level)) if is_column else each.solution)
    ]
    columns = f"`hint_level_1` to `hint_level_{settings.max_level}`" if is_column else "`solution`"
    check(
        problems,
        f"no problem of {TRAIN} has what hint.source={settings.source} needs: {columns} "
        f"(docs/data.md); add them or choose trainer.method={BASELINE}",
    )
    if settings.source in ("dataset", "solution_prefix"):
        return
    requests = [hint_request(texts, each.text, each.solution) for each in problems]
    model.check_template(requests[0])
    sizes = model.count_tokens(requests)
    check(
        min(sizes) <= model.context - settings.max_tokens,
        f"hint.max_tokens={settings.max_tokens}: no hint request fits, the shortest has "
        f"{min(sizes)} tokens and the model's context is {model.context} ({MAX_MODEL_LEN})",
    )


def check_rows(
    config: DictConfig, method: Method, model: Model, files: Sequence[ProblemFile]
) -> None:
    """Check that solutions, where the method trains on them, fit, and who opens <think>."""
    limit, needs = setting(config, "data.max_response_length"), method.needs
    who = f"trainer.method={config.trainer.method} needs"
    if needs.solution or needs.closed_prompt:
        text = model.renderer.text(files[0].problems[0].messages)
        check(
            not text.rstrip().endswith("<think>"),
            f"{who} a chat template that does not end the prompt with <think>, for the response or "
            f"the solution opens it; set {_TEMPLATE}",
        )
    for file in files if needs.solution else ():
        for row, problem in enumerate(file.problems):
            size = len(model.renderer.response(problem.solution)) if problem.solution.strip() else 0
            if not 0 < size <= limit:
                raise DataError(
                    f"{file.path}: row {row} has a solution of {size} tokens; {who} one within "
                    f"data.max_response_length={limit}; drop the row, or raise the limit"
                )


def check_turns(
    config: DictConfig, method: Method, model: Model, lengths: Lengths, some: ProblemFile
) -> None:
    """Check that the longest prompt has room for a second turn, and the template takes turns.

    A turn without room is not sampled: such a conversation ends with its first response.
    """
    if not method.is_multi_turn:
        return
    prompt, response = setting(config, PROMPT_LENGTH), setting(config, f"{ROLLOUT}.response_length")
    least = lengths.longest_prompt + response
    check(
        least <= prompt,
        f"{PROMPT_LENGTH}={prompt} has no room for a second turn of trainer.method="
        f"{config.trainer.method}: the longest prompt and its response (data.max_response_length) "
        f"may have {least} tokens, and the method's instructions follow; give more",
    )
    reply = {"role": "assistant", "content": "Response"}
    later = {"role": "user", "content": "Instruction"}
    model.check_template([*some.problems[0].messages, reply, later])
