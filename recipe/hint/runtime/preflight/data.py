"""Checks of the model's files and of the data: contract, template, and lengths in tokens."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from omegaconf import DictConfig

from recipe.hint.errors import ConfigError, DataError
from recipe.hint.hints.self_generated import hint_request
from recipe.hint.methods import BASELINE
from recipe.hint.problems.columns import read_problems
from recipe.hint.prompt import Message, Texts
from recipe.hint.runtime.preflight.settings import ROLLOUT, files_of, setting
from recipe.hint.schema import Problem
from recipe.hint.settings import HintSettings
from recipe.hint.turns import with_hint

TRAIN, VAL, MODEL = "data.train_files", "data.val_files", "actor_rollout_ref.model.path"
_TEMPLATE = "actor_rollout_ref.model.custom_chat_template"
_PROMPT, _CONTEXT = f"{ROLLOUT}.prompt_length", f"{ROLLOUT}.max_model_len"
_CHUNK = 1024
# Above this many problems, hint requests are counted in a sample.
_ALL_UP_TO = 20_000
_SAMPLE = 2_000
# A hint shorter than this many tokens says little.
_HINT_ROOM = 32


@dataclass(frozen=True)
class DataFile:
    """One file and its problems; a problem's place in the list is its row in the file."""

    path: str
    problems: list[Problem]


@dataclass(frozen=True)
class Model:
    """What the checks of the data need of a model.

    ``num_parameters`` is unknown for weights that are not there yet or not in safetensors;
    ``context`` is the longest sequence in tokens.
    """

    path: str
    tokenizer: Any
    num_parameters: int | None
    context: int
    template_options: dict[str, Any]

    def count_tokens(self, conversations: Sequence[Sequence[Message]]) -> list[int]:
        """Count the tokens of each conversation, generation prompt included."""
        counts: list[int] = []
        for start in range(0, len(conversations), _CHUNK):
            texts = [self._render(messages) for messages in conversations[start : start + _CHUNK]]
            encoded = self.tokenizer(texts, add_special_tokens=False, verbose=False)
            counts += [len(token_ids) for token_ids in encoded["input_ids"]]
        return counts

    def check_template(self, messages: Sequence[Message]) -> None:
        """Make sure that every turn of a conversation is in what the model will see."""
        text = self._render(messages)
        for turn in messages:
            if turn["content"].strip() not in text:
                raise ConfigError(
                    f"{MODEL}={self.path}: the chat template drops the {turn['role']} turn "
                    f"{turn['content'][:40]!r}; use a model whose template keeps it, or set "
                    f"{_TEMPLATE}"
                )

    def _render(self, messages: Sequence[Message]) -> str:
        try:
            return self.tokenizer.apply_chat_template(
                list(messages), add_generation_prompt=True, tokenize=False, **self.template_options
            )
        except (TemplateError, ValueError, TypeError, KeyError) as error:
            roles = ", ".join(turn["role"] for turn in messages)
            raise ConfigError(
                f"{MODEL}={self.path}: the chat template refuses a conversation of {roles}: "
                f"{_one_line(error)}; use a model whose template takes these roles, or set "
                f"{_TEMPLATE}"
            ) from error


@dataclass
class Lengths:
    """What was measured, in tokens, and what a person should know before the start."""

    longest_prompt: int = 0
    longest_request: int = 0
    warnings: list[str] = field(default_factory=list)


def check_given(config: DictConfig, names: Sequence[str]) -> None:
    """Make sure that there are files and a model to look at."""
    missing = [name for name in names if not files_of(config, name)]
    if missing:
        raise ConfigError(
            f"not set: {', '.join(missing)}; give {' '.join(f'{name}=PATH' for name in missing)}, "
            f"or hardware=laptop to run the embedded model and problems on the CPU"
        )


def read_files(config: DictConfig, name: str) -> list[DataFile]:
    """Read the files of ``data.train_files`` or ``data.val_files``."""
    files = []
    for path in files_of(config, name):
        if Path(path).suffix != ".parquet":
            raise DataError(
                f"{name}={path}: the name must end in .parquet; main_prepare.py writes such a file "
                f"from JSONL"
            )
        files.append(DataFile(path, read_problems(path)))
    return files


def read_training_files(config: DictConfig) -> list[DataFile]:
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


def check_unique(files: Sequence[DataFile], key_of: Callable[[Problem], object], rule: str) -> None:
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


def num_training_problems(config: DictConfig, files: Sequence[DataFile]) -> int:
    """Count the problems that an epoch draws from."""
    total = sum(len(file.problems) for file in files)
    cap = setting(config, "data.train_max_samples") or -1
    return min(total, cap) if cap > 0 else total


def load_model(config: DictConfig, *, has_weights: bool = True) -> Model:
    """Read everything but the weights, of which only the headers are looked at.

    Args:
        config: The run's.
        has_weights: Whether the folder holds them already.
    """
    path = setting(config, MODEL)
    if not isinstance(path, str) or not path.strip():
        raise ConfigError(f"{MODEL} is not set; give the folder of a model")
    context, folder = _context(config, path), Path(path).expanduser()
    if not folder.is_dir():  # a name on the hub: None when it is still to be fetched
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(path, "config.json")
        folder = Path(cached).parent if isinstance(cached, str) else None
    num_parameters = _num_parameters(folder) if folder and has_weights else None
    tokenizer = _load_tokenizer(config, str(folder or path))
    options = setting(config, "data.apply_chat_template_kwargs") or {}
    return Model(path, tokenizer, num_parameters, context, dict(options))


def check_lengths(
    config: DictConfig,
    model: Model,
    *,
    val: Sequence[DataFile],
    train: Sequence[DataFile] = (),
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
    prompt, response = setting(config, _PROMPT), setting(config, f"{ROLLOUT}.response_length")
    if prompt + response > model.context:
        source = _CONTEXT if setting(config, _CONTEXT) else "the model's positions"
        raise ConfigError(
            f"{_PROMPT}={prompt} + data.max_response_length={response} = {prompt + response} "
            f"tokens, above {source} ({model.context}); lower one of the two"
        )
    lengths = Lengths()
    for file in (*train, *val):
        model.check_template(file.problems[0].messages)
        _check_prompts(config, file, model, lengths)
    if hints is not None:
        settings, texts = hints
        problems = _with_hints(train, settings)
        total = len(problems)
        if total > _ALL_UP_TO:
            problems = random.Random(settings.seed).sample(problems, _SAMPLE)
        of = f"of {total}" if total == len(problems) else f"of {len(problems)} sampled from {total}"
        if settings.source not in ("dataset", "solution_prefix"):
            _check_requests(problems, model, hints=hints, lengths=lengths, of=of)
        sizes = model.count_tokens(
            [with_hint(problem.messages, "", texts, settings.style) for problem in problems]
        )
        if short := sum(prompt - size < _HINT_ROOM for size in sizes):
            lengths.warnings.append(
                f"{short} {of} prompts leave fewer than {_HINT_ROOM} tokens for a hint in "
                f"rollout.prompt_length={prompt}"
            )
    return lengths


def _check_prompts(config: DictConfig, file: DataFile, model: Model, lengths: Lengths) -> None:
    # Where both are equal the first: verl drops by it.
    name = min("data.max_prompt_length", _PROMPT, key=lambda name: setting(config, name))
    limit = setting(config, name)
    counts = model.count_tokens([problem.messages for problem in file.problems])
    too_long = [row for row, count in enumerate(counts) if count > limit]
    is_dropped = name != _PROMPT and setting(config, "data.filter_overlong_prompts")
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


def _with_hints(files: Sequence[DataFile], settings: HintSettings) -> list[Problem]:
    """Return the problems that the source of hints has something for."""
    problems = [problem for file in files for problem in file.problems]
    if settings.source == "dataset":
        levels = settings.max_level
        found = [
            each for each in problems if len(each.hints) >= levels and all(each.hints[:levels])
        ]
        columns = " and ".join(f"`hint_level_{level}`" for level in range(1, levels + 1))
    else:
        found = [each for each in problems if each.solution.strip()]
        columns = "`solution`"
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
            f"{min(sizes)} tokens and the model's context is {model.context} ({_CONTEXT}); lower "
            f"hint.max_tokens"
        )
    if over:
        lengths.warnings.append(
            f"{over} {of} hint requests leave fewer than hint.max_tokens={settings.max_tokens} of "
            f"the context of {model.context} tokens: their hints may be cut or missing"
        )


def _context(config: DictConfig, path: str) -> int:
    """Return the longest sequence in tokens, as verl and vLLM see it."""
    folder = Path(path).expanduser()
    if folder.is_file():
        raise ConfigError(f"{MODEL}={path} is a file; give the folder of a model")
    is_name = path.count("/") == 1 and not path.startswith((".", "/", "~"))
    if not folder.exists() and not is_name:
        raise ConfigError(f"{MODEL}={path}: no such folder; give the folder of a model")
    from transformers import AutoConfig
    from verl.workers.rollout.utils import get_max_position_embeddings

    place = folder if folder.exists() else path
    try:
        trust = bool(setting(config, "actor_rollout_ref.model.trust_remote_code"))
        found = AutoConfig.from_pretrained(place, trust_remote_code=trust)
        longest = get_max_position_embeddings(found)
    except (OSError, ValueError, TypeError, KeyError) as error:
        offline = os.environ.get("HF_HUB_OFFLINE", 0)
        remedy = f"no such folder, and on the hub with HF_HUB_OFFLINE={offline} "
        raise ConfigError(
            f"{MODEL}={path}: {'' if folder.exists() else remedy}{place}/config.json cannot be "
            f"read ({_one_line(error)}); give the folder of a model in Hugging Face format, or a "
            f"name with HF_HUB_OFFLINE=0 to let it be fetched"
        ) from error
    given = setting(config, _CONTEXT)
    if given and given > longest:
        raise ConfigError(
            f"{_CONTEXT}={given} is above the {longest} positions of the model {path}; give "
            f"{longest} or less"
        )
    return given or longest


def _num_parameters(folder: Path) -> int | None:
    """Sum over the headers of the safetensors files; ``None`` for other formats."""
    from safetensors import SafetensorError, safe_open

    files = sorted(folder.glob("*.safetensors"))
    if not files and not list(folder.glob("*.bin")):
        raise ConfigError(
            f"{MODEL}={folder}: no weights (*.safetensors or *.bin); the folder has "
            f"{', '.join(sorted(each.name for each in folder.iterdir())) or 'nothing'}"
        )
    total = 0
    for file in files:
        try:
            with safe_open(file, framework="np") as weights:
                total += sum(
                    math.prod(weights.get_slice(key).get_shape()) for key in weights.keys()
                )
        except (OSError, SafetensorError) as error:
            raise ConfigError(
                f"{MODEL}={folder}: {file.name} is not whole ({_one_line(error)}); fetch it again"
            ) from error
    return total or None


def _load_tokenizer(config: DictConfig, path: str) -> Any:
    from transformers import AutoTokenizer

    path = setting(config, "actor_rollout_ref.model.tokenizer_path") or path
    trust = bool(setting(config, "actor_rollout_ref.model.trust_remote_code"))
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=trust)
    except Exception as error:  # noqa: BLE001 - tokenizers raises bare Exception on a broken file
        raise ConfigError(
            f"{MODEL}={path}: the tokenizer cannot be loaded: {_one_line(error)}"
        ) from error
    if template := setting(config, _TEMPLATE):
        tokenizer.chat_template = template
    if not tokenizer.chat_template:
        raise ConfigError(
            f"{MODEL}={path}: the tokenizer has no chat template; use an instruction-tuned model "
            f"or set {_TEMPLATE}"
        )
    if tokenizer.eos_token_id is None:
        raise ConfigError(
            f"{MODEL}={path}: the tokenizer has no eos token, so no response would ever end; set "
            f"eos_token in tokenizer_config.json"
        )
    return tokenizer


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
