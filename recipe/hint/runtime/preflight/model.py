"""Checks of the model's files: configuration, weights, tokenizer and chat template."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from recipe.hint.errors import ConfigError
from recipe.hint.prompt import Message
from recipe.hint.runtime.preflight.settings import setting

_SETTING = "actor_rollout_ref.model.path"
_CHUNK = 1024


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

    def render(self, messages: Sequence[Message]) -> str:
        """A conversation as the text that the model continues.

        Raises:
            ConfigError: If the chat template refuses it.
        """
        from jinja2 import TemplateError

        try:
            return self.tokenizer.apply_chat_template(
                list(messages), add_generation_prompt=True, tokenize=False, **self.template_options
            )
        except (TemplateError, ValueError, TypeError, KeyError) as error:
            roles = ", ".join(turn["role"] for turn in messages)
            raise ConfigError(
                f"{_SETTING}={self.path}: the chat template refuses a conversation of {roles}: "
                f"{_one_line(error)}; use a model whose template takes these roles, or set "
                f"actor_rollout_ref.model.custom_chat_template"
            ) from error

    def count_tokens(self, conversations: Sequence[Sequence[Message]]) -> list[int]:
        """Tokens of each conversation, generation prompt included."""
        counts: list[int] = []
        for start in range(0, len(conversations), _CHUNK):
            texts = [self.render(messages) for messages in conversations[start : start + _CHUNK]]
            encoded = self.tokenizer(texts, add_special_tokens=False, verbose=False)
            counts += [len(token_ids) for token_ids in encoded["input_ids"]]
        return counts


def load_model(config: DictConfig, *, has_weights: bool = True) -> Model:
    """Read everything but the weights, of which only the headers are looked at.

    Args:
        config: The run's.
        has_weights: Whether the folder holds them already.

    Raises:
        ConfigError: If a part is missing, broken, or contradicts ``rollout.max_model_len``.
    """
    path = setting(config, _SETTING)
    if not isinstance(path, str) or not path.strip():
        raise ConfigError(f"{_SETTING} is not set; give the folder of a model")
    folder = _folder(path)
    found = _read_config(folder, path)
    num_parameters = _num_parameters(folder) if folder and has_weights else None
    tokenizer = _load_tokenizer(config, str(folder or path))
    options = setting(config, "data.apply_chat_template_kwargs") or {}
    if OmegaConf.is_config(options):
        options = OmegaConf.to_container(options)
    return Model(path, tokenizer, num_parameters, _context(config, found, path), dict(options))


def check_template(model: Model, messages: Sequence[Message]) -> None:
    """Make sure that every turn of a conversation is in what the model will see.

    Raises:
        ConfigError: If the template refuses the conversation or drops a turn.
    """
    text = model.render(messages)
    for turn in messages:
        if turn["content"].strip() not in text:
            raise ConfigError(
                f"{_SETTING}={model.path}: the chat template drops the {turn['role']} turn "
                f"{turn['content'][:40]!r}; use a model whose template keeps it, or set "
                f"actor_rollout_ref.model.custom_chat_template"
            )


def _folder(path: str) -> Path | None:
    """The model's folder, or ``None`` for a hub name that is still to be fetched."""
    folder = Path(path).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists():
        raise ConfigError(f"{_SETTING}={path} is a file; give the folder of a model")
    is_name = path.count("/") == 1 and not path.startswith((".", "/", "~"))
    if not is_name:
        raise ConfigError(f"{_SETTING}={path}: no such folder; give the folder of a model")
    from huggingface_hub import constants, try_to_load_from_cache

    cached = try_to_load_from_cache(path, "config.json")
    if isinstance(cached, str):
        return Path(cached).parent
    if constants.HF_HUB_OFFLINE:
        raise ConfigError(
            f"{_SETTING}={path}: no such folder, and as a name on the hub it is not in the local "
            f"cache while HF_HUB_OFFLINE={os.environ.get('HF_HUB_OFFLINE', 1)}; give a folder, or "
            f"set HF_HUB_OFFLINE=0 to let it be fetched"
        )
    return None


def _read_config(folder: Path | None, path: str) -> dict[str, Any]:
    if folder is None:
        from transformers import AutoConfig

        try:
            return AutoConfig.from_pretrained(path).to_dict()
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{_SETTING}={path}: cannot be fetched: {_one_line(error)}"
            ) from error
    file = folder / "config.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{_SETTING}={path}: {file} cannot be read ({_one_line(error)}); "
            f"give the folder of a model in Hugging Face format"
        ) from error
    if not isinstance(found, dict):
        raise ConfigError(f"{_SETTING}={path}: {file} holds no mapping; the file is broken")
    return found


def _context(config: DictConfig, found: dict[str, Any], path: str) -> int:
    """Longest sequence in tokens, as verl and vLLM see it."""
    text_config = found.get("text_config") or {}
    longest = found.get("max_position_embeddings") or text_config.get("max_position_embeddings")
    if not isinstance(longest, int):
        raise ConfigError(f"{_SETTING}={path}: config.json has no max_position_embeddings")
    name = "actor_rollout_ref.rollout.max_model_len"
    given = setting(config, name)
    if given and given > longest:
        raise ConfigError(
            f"{name}={given} is above the {longest} positions of the model {path}; "
            f"give {longest} or less"
        )
    return given or longest


def _num_parameters(folder: Path) -> int | None:
    """Summed over the headers of the safetensors files; ``None`` for other formats.

    Raises:
        ConfigError: If there are no weights, or a file is cut off.
    """
    files = sorted(folder.glob("*.safetensors"))
    if files:
        return sum(_elements(file) for file in files)
    if list(folder.glob("*.bin")):
        return None
    raise ConfigError(
        f"{_SETTING}={folder}: no weights (*.safetensors or *.bin); the folder has "
        f"{', '.join(sorted(each.name for each in folder.iterdir())) or 'nothing'}"
    )


def _elements(file: Path) -> int:
    try:
        with open(file, "rb") as handle:
            size = int.from_bytes(handle.read(8), "little")
            if size > file.stat().st_size:
                raise ValueError("the header is longer than the file")
            header = json.loads(handle.read(size))
        header.pop("__metadata__", None)
        end = 8 + size + max(entry["data_offsets"][1] for entry in header.values())
        if end != file.stat().st_size:
            raise ValueError(f"{file.stat().st_size} bytes instead of {end}")
        return sum(math.prod(entry["shape"]) for entry in header.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{_SETTING}={file.parent}: {file.name} is not whole ({_one_line(error)}); "
            f"fetch it again"
        ) from error


def _load_tokenizer(config: DictConfig, path: str) -> Any:
    path = setting(config, "actor_rollout_ref.model.tokenizer_path") or path
    from transformers import AutoTokenizer

    trust = bool(setting(config, "actor_rollout_ref.model.trust_remote_code"))
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=trust)
    except Exception as error:  # noqa: BLE001 - tokenizers raises bare Exception on a broken file
        raise ConfigError(
            f"{_SETTING}={path}: the tokenizer cannot be loaded: {_one_line(error)}"
        ) from error
    if template := setting(config, "actor_rollout_ref.model.custom_chat_template"):
        tokenizer.chat_template = template
    if not tokenizer.chat_template:
        raise ConfigError(
            f"{_SETTING}={path}: the tokenizer has no chat template; use an instruction-tuned "
            f"model or set actor_rollout_ref.model.custom_chat_template"
        )
    if tokenizer.eos_token_id is None:
        raise ConfigError(
            f"{_SETTING}={path}: the tokenizer has no eos token, so no answer would ever end; "
            f"set eos_token in tokenizer_config.json"
        )
    return tokenizer


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
