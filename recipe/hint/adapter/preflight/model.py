"""Read what the checks need from a model: tokenizer, template, context and size."""

from __future__ import annotations

import difflib
import functools
import itertools
import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import TemplateError, meta
from omegaconf import DictConfig, OmegaConf

from recipe.hint.adapter.chat_template import (
    BREAK,
    Renderer,
    end_of_turn,
    refuses_system,
    unfixed_date,
)
from recipe.hint.adapter.preflight.settings import MODEL_NODE, ROLLOUT, Sizes, setting
from recipe.hint.prompt import Message
from recipe.run.checkpoints import known_checkpoints
from recipe.run.errors import ConfigError, one_line
from recipe.run.paths import model_folder

MODEL, MAX_MODEL_LEN = f"{MODEL_NODE}.path", f"{ROLLOUT}.max_model_len"
_CRITIC = "critic.model.path"
_ADAPTER, _RANK = (f"{MODEL_NODE}.lora_{name}" for name in ("adapter_path", "rank"))
_OTHER_ADAPTERS = ("use_rslora", "use_dora", "rank_pattern", "alpha_pattern", "modules_to_save")
_TEMPLATE = f"{MODEL_NODE}.custom_chat_template"
_OPTIONS = "data.apply_chat_template_kwargs"
_DTYPE = "actor_rollout_ref.actor.fsdp_config.model_dtype"  # of the weights that are sent
_BUCKET = f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes"
_SHARED_MEMORY = "/dev/shm"
_CHUNK = 1024
# For which vLLM's attention on a CPU has a kernel; its engine dies at the first group of another.
CPU_HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)


@dataclass(frozen=True)
class Model:
    """What the checks of the data need of a model.

    ``num_parameters`` is unknown for weights that are not there yet or not in safetensors;
    ``context`` is the longest sequence in tokens; ``warnings`` are what its files promise no good.
    """

    path: str
    tokenizer: Any
    num_parameters: int | None
    context: int
    template_options: dict[str, Any]
    warnings: tuple[str, ...] = ()

    @functools.cached_property
    def folds_system(self) -> bool:
        """Whether the template refuses a system turn, so that its text goes into the user's."""
        return refuses_system(self.tokenizer, self.template_options)

    @functools.cached_property
    def renderer(self) -> Renderer:
        """What makes prompts of conversations, without verl's builder."""
        return Renderer(self.tokenizer, None, 0, self.folds_system, self.template_options)

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
            if turn["content"].replace(BREAK, "\ufffd").strip() not in text:
                raise ConfigError(
                    f"{MODEL}={self.path}: the chat template drops the {turn['role']} turn "
                    f"{turn['content'][:40]!r}; use a model whose template keeps it, or set "
                    f"{_TEMPLATE}"
                )

    def _render(self, messages: Sequence[Message]) -> str:
        try:
            return self.renderer.text(messages)
        except (TemplateError, ValueError, TypeError, KeyError) as error:
            roles = ", ".join(turn["role"] for turn in messages)
            raise ConfigError(
                f"{MODEL}={self.path}: the chat template refuses a conversation of {roles}: "
                f"{one_line(error, 200)}; use a model whose template takes these roles, or set "
                f"{_TEMPLATE}"
            ) from error


def load_model(config: DictConfig, *, has_weights: bool = True) -> Model:
    """Read everything but the weights, of which only the headers are looked at.

    Args:
        config: The run's.
        has_weights: Whether the folder holds them already.
    """
    path = setting(config, MODEL)
    folder = _folder_of(MODEL, path)
    context = _context(config, path, folder)
    sizes = _weight_sizes(folder) if isinstance(folder, Path) and has_weights else []
    check_bucket(config, sizes, path)
    check_adapter(config)
    tokenizer = _load_tokenizer(config, str(folder))
    options = dict(setting(config, _OPTIONS) or {})
    warnings = (
        *_unread_options(tokenizer.chat_template, options),
        *_template_warnings(config, tokenizer, options, str(folder)),
    )
    return Model(path, tokenizer, sum(sizes) or None, context, options, warnings)


def _folder_of(name: str, path: Any) -> Path | str:
    """Return a model's folder, or its name on the hub where it is still to be fetched."""
    if not isinstance(path, str) or not path.strip():
        raise ConfigError(f"{name} is not set; give the folder of a model")
    if Path(path).expanduser().is_file():
        raise ConfigError(f"{name}={path} is a file; give the folder of a model")
    if folder := model_folder(path):
        return folder
    known = known_checkpoints(path)
    checkpoints = f", or a checkpoint: {known}" if known else ""
    if path.count("/") != 1 or path.startswith((".", "/", "~")):
        raise ConfigError(f"{name}={path}: no such folder; give the folder of a model{checkpoints}")
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise ConfigError(
            f"{name}={path}: no such folder here, the hub's cache ({constants.HF_HUB_CACHE}) does "
            f"not have it, and HF_HUB_OFFLINE=1 asks nobody: fetch it first (hf download {path}), "
            f"or start with HF_HUB_OFFLINE=0{checkpoints}"
        )
    return path


def _positions(config: DictConfig, section: str, place: Path | str) -> tuple[Any, int]:
    """Return a model's configuration as verl overrides it, and its positions."""
    from transformers import AutoConfig
    from verl.utils.model import update_model_config
    from verl.workers.rollout.utils import get_max_position_embeddings

    trust = bool(setting(config, f"{section}.trust_remote_code"))
    node: Any = setting(config, f"{section}.override_config") or {}
    overrides: Any = OmegaConf.to_container(node) if OmegaConf.is_config(node) else node
    try:
        found = AutoConfig.from_pretrained(place, trust_remote_code=trust)
        update_model_config(found, overrides.get("model_config", overrides))
        return found, get_max_position_embeddings(found)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"{section}.path={place}: {place}/config.json cannot be read, or not be changed by "
            f"{section}.override_config={overrides} ({one_line(error, 200)}); give a model in "
            f"Hugging Face format, or, for one of the hub, see whether it can be reached"
        ) from error


def _context(config: DictConfig, path: str, folder: Path | str) -> int:
    """Return the longest sequence in tokens, as verl and vLLM see it."""
    found, longest = _positions(config, MODEL_NODE, folder)
    check_head_size(config, found, path)
    given = setting(config, MAX_MODEL_LEN)
    if given and given > longest:
        raise ConfigError(
            f"{MAX_MODEL_LEN}={given} is above the {longest} positions of the model {path}; give "
            f"{longest} or less"
        )
    return given or longest


def check_head_size(config: DictConfig, model: Any, path: str) -> None:
    """Make sure that vLLM has attention for the heads of a model on a CPU."""
    text = model.get_text_config()
    heads = getattr(text, "num_attention_heads", None)
    size = getattr(text, "head_dim", None) or (heads and text.hidden_size // heads)
    if setting(config, "trainer.device") == "cpu" and size and size not in CPU_HEAD_SIZES:
        raise ConfigError(
            f"{MODEL}={path} has attention heads of {size} dimensions, and vLLM on a CPU knows "
            f"{', '.join(map(str, CPU_HEAD_SIZES))}; use another model, or a GPU"
        )


def check_critic_model(config: DictConfig, model: Model, sizes: Sizes) -> int | None:
    """Make sure that a critic of another model reads the policy's tokens, and as many of them.

    Returns:
        The number of its parameters; ``None`` if its weights are not in a folder of this machine.
    """
    path = setting(config, _CRITIC)
    if path == model.path:
        return model.num_parameters
    from transformers import AutoTokenizer

    place = _folder_of(_CRITIC, path)
    _, longest = _positions(config, "critic.model", place)
    trust = bool(setting(config, "critic.model.trust_remote_code"))
    own, name = model.tokenizer.get_vocab(), f"{_CRITIC}={path}"
    other = AutoTokenizer.from_pretrained(place, trust_remote_code=trust).get_vocab()
    if differing := sorted(own.items() ^ other.items()):
        raise ConfigError(
            f"{name} has another vocabulary than {MODEL}={model.path}, by {differing[0][0]!r}; a "
            f"critic reads the policy's tokens, so give a model with the same tokenizer"
        )
    if longest < (needed := sizes.prompt + sizes.response):
        raise ConfigError(
            f"{name} has {longest} positions, and a prompt with its response up to {needed}; give "
            f"a critic with a longer context"
        )
    return sum(_weight_sizes(place, _CRITIC)) or None if isinstance(place, Path) else None


def check_adapter(config: DictConfig) -> None:
    """Refuse a given LoRA adapter that verl would not train, or that no export could add."""
    path = setting(config, _ADAPTER)
    if not path:
        return
    rank = setting(config, _RANK) or 0
    try:
        found = json.loads((Path(path) / "adapter_config.json").read_text(encoding="utf-8"))
        own = found["r"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{_ADAPTER}={path} has no adapter_config.json with the rank r ({error}); give the "
            f"folder of a PEFT adapter"
        ) from error
    if rank != own:
        raise ConfigError(
            f"{_ADAPTER}={path} has the rank {own}, and {_RANK} is {rank}; give {_RANK}={own}"
        )
    if other := [name for name in _OTHER_ADAPTERS if found.get(name)]:
        raise ConfigError(
            f"{_ADAPTER}={path} has {', '.join(other)}: an evaluation and main_export.py add "
            f"lora_alpha / r B A alone to the weights; give an adapter without it"
        )


def check_bucket(config: DictConfig, sizes: Sequence[int], path: str) -> None:
    """Make sure that the weight sync can carry a model on a CPU, through shared memory.

    verl stops at the first sync where a weight is larger than a bucket, and the system silently
    kills the trainer if the bucket does not fit. On a GPU a larger weight is sent on its own.

    Args:
        config: The run's.
        sizes: How many numbers each weight has; empty where that is unknown.
        path: The model's.
    """
    if setting(config, "trainer.device") != "cpu" or setting(config, "trainer.eval_only"):
        return
    from verl.utils.torch_dtypes import PrecisionType

    dtype, bucket_mb = PrecisionType.to_dtype(setting(config, _DTYPE)), setting(config, _BUCKET)
    whole_mb, largest_mb = (
        -(-number * dtype.itemsize // 2**20) for number in (sum(sizes), max(sizes, default=0))
    )
    if largest_mb > bucket_mb:
        raise ConfigError(
            f"{_BUCKET}={bucket_mb} is below the largest weight of {MODEL}={path} ({largest_mb} MB "
            f"in {_DTYPE}={setting(config, _DTYPE)}); give {largest_mb} or more"
        )
    free_mb = shutil.disk_usage(_SHARED_MEMORY).free // 2**20
    if min(whole_mb, bucket_mb) > free_mb:
        raise ConfigError(
            f"{MODEL}={path}: a sync of its weights takes {min(whole_mb, bucket_mb)} MB of shared "
            f"memory, and {_SHARED_MEMORY} has {free_mb} MB free; give it more (docker run "
            f"--shm-size), or {_BUCKET}={largest_mb} or more"
        )


def _unread_options(template: str, options: dict[str, Any]) -> list[str]:
    """Return a warning for each variable of the template that it does not read."""
    if not options:
        return []
    environment = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"])
    try:
        # transformers' own block for the tokens of the assistant means nothing here.
        plain = template.replace("endgeneration", "endif").replace("% generation", "% if true")
        read = meta.find_undeclared_variables(environment.parse(plain))
    except TemplateError:
        return []
    lines = []
    for name in options.keys() - read:
        close = difflib.get_close_matches(str(name), read, n=1)
        meant = f"did you mean {close[0]}?" if close else f"it reads {', '.join(sorted(read))}"
        lines.append(f"{_OPTIONS}.{name} is not read by the model's chat template; {meant}")
    return lines


def _template_warnings(
    config: DictConfig, tokenizer: Any, options: dict[str, Any], place: str
) -> list[str]:
    warnings = []
    if refuses_system(tokenizer, options):
        warnings.append(
            "the chat template refuses a system turn: such texts stand before the first user's"
        )
    if unfixed_date(tokenizer, options):
        warnings.append(
            "the chat template writes today's date into every prompt, so a run that resumes "
            f"tomorrow sees other prompts; fix it with +{_OPTIONS}.date_string='26 Jul 2024'"
        )
    from verl.utils.model import get_generation_config

    trust = bool(setting(config, f"{MODEL_NODE}.trust_remote_code"))
    ids = getattr(get_generation_config(place, trust_remote_code=trust), "eos_token_id", None)
    stops = set() if ids is None else {ids} if isinstance(ids, int) else set(ids)
    if stops and tokenizer.eos_token_id not in stops:
        ends = " or ".join(repr(tokenizer.decode([each])) for each in sorted(stops))
        warnings.append(
            f"the tokenizer's end token is {tokenizer.eos_token!r}, the model's "
            f"(generation_config.json or config.json) is {ends}: a response may end at the wrong "
            f"one; set eos_token in {place}/tokenizer_config.json"
        )
    end = end_of_turn(tokenizer, options)
    if end is not None and end not in stops | {tokenizer.eos_token_id}:
        warnings.append(
            f"the chat template ends a response with {tokenizer.decode([end])!r}, at which vLLM "
            f"does not stop: {place}/generation_config.json has eos_token_id={sorted(stops)}; add "
            f"{end} to it"
        )
    return warnings


def _weight_sizes(folder: Path, name: str = MODEL) -> list[int]:
    """Return how many numbers each weight has, by the headers of safetensors files.

    Empty for other formats.
    """
    from safetensors import SafetensorError, safe_open

    files = sorted(folder.glob("*.safetensors"))
    if not files and not list(folder.glob("*.bin")):
        raise ConfigError(
            f"{name}={folder}: no weights (*.safetensors or *.bin); the folder has "
            f"{', '.join(sorted(each.name for each in folder.iterdir())) or 'nothing'}"
        )
    sizes = []
    for file in files:
        try:
            with safe_open(file, framework="np") as weights:
                sizes += [math.prod(weights.get_slice(key).get_shape()) for key in weights.keys()]
        except (OSError, SafetensorError) as error:
            raise ConfigError(
                f"{name}={folder}: {file.name} is not whole ({one_line(error, 200)}); fetch it "
                f"again"
            ) from error
    return sizes


def _load_tokenizer(config: DictConfig, path: str) -> Any:
    from transformers import AutoTokenizer

    path = setting(config, f"{MODEL_NODE}.tokenizer_path") or path
    trust = bool(setting(config, f"{MODEL_NODE}.trust_remote_code"))
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=trust)
    except Exception as error:  # noqa: BLE001 - tokenizers raises bare Exception on a broken file
        raise ConfigError(
            f"{MODEL}={path}: the tokenizer cannot be loaded: {one_line(error, 200)}"
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
