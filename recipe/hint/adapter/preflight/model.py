"""Read what the checks need from a model: tokenizer, template, context and size."""

from __future__ import annotations

import functools
import itertools
import math
import shutil
from collections.abc import Iterator, Sequence
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
from recipe.hint.prompt import Message
from recipe.run.checkpoints import known_checkpoints
from recipe.run.config import MODEL_NODE, ROLLOUT, setting
from recipe.run.errors import ConfigError, one_line
from recipe.run.paths import model_folder

MODEL, MAX_MODEL_LEN = f"{MODEL_NODE}.path", f"{ROLLOUT}.max_model_len"
_TEMPLATE = f"{MODEL_NODE}.custom_chat_template"
_OPTIONS = "data.apply_chat_template_kwargs"
_BUCKET = f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes"
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
        """What makes prompts of conversations."""
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
                f"{one_line(error, 200)}; give another with {_TEMPLATE}"
            ) from error


def load_model(config: DictConfig, *, has_weights: bool = True) -> Model:
    """Read everything but the weights, of which only the headers are looked at.

    Args:
        config: The run's.
        has_weights: Whether the folder holds them already.

    Raises:
        ConfigError: If it cannot be read, or not do what the run asks of it.
    """
    path = setting(config, MODEL)
    folder = _folder_of(MODEL, path)
    found, longest = _positions(config, MODEL_NODE, folder)
    given = setting(config, MAX_MODEL_LEN)
    if given and given > longest:
        raise ConfigError(f"{MAX_MODEL_LEN}={given} is above the {longest} positions of {path}")
    text = found.get_text_config()
    heads = getattr(text, "num_attention_heads", None)
    size = getattr(text, "head_dim", None) or (heads and text.hidden_size // heads)
    is_cpu = setting(config, "trainer.device") == "cpu"
    if is_cpu and size and size not in CPU_HEAD_SIZES:
        raise ConfigError(
            f"{MODEL}={path} has attention heads of {size} dimensions, and vLLM on a CPU knows "
            f"{', '.join(map(str, CPU_HEAD_SIZES))}; use another model, or a GPU"
        )
    sizes = _weight_sizes(MODEL, folder) if has_weights else []
    if is_cpu and not setting(config, "trainer.eval_only"):
        check_bucket(config, sizes, path)
    tokenizer = _load_tokenizer(config, str(folder))
    options = dict(setting(config, _OPTIONS) or {})
    warnings = tuple(_warnings(config, tokenizer, options, str(folder)))
    return Model(path, tokenizer, sum(sizes) or None, given or longest, options, warnings)


def _folder_of(name: str, path: Any) -> Path | str:
    """Return a model's folder, or its name on the hub where it is still to be fetched."""
    if folder := model_folder(str(path)):
        return folder
    is_of_hub = str(path).count("/") == 1 and not str(path).startswith((".", "/", "~"))
    if not is_of_hub:
        known = known_checkpoints(path)
        raise ConfigError(
            f"{name}={path}: no such folder; give the folder of a model{known and f': {known}'}"
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
            f"{section}.override_config={overrides} ({one_line(error, 200)})"
        ) from error


def _weight_sizes(name: str, folder: Path | str) -> list[int]:
    """Return how many numbers each weight has, by the headers of safetensors files."""
    from safetensors import SafetensorError, safe_open

    files = sorted(Path(folder).glob("*.safetensors"))
    if Path(folder).is_dir() and not files and not list(Path(folder).glob("*.bin")):
        raise ConfigError(f"{name}={folder}: no weights (*.safetensors or *.bin)")
    sizes = []
    for file in files:
        try:
            with safe_open(file, framework="np") as weights:
                sizes += [math.prod(weights.get_slice(key).get_shape()) for key in weights.keys()]
        except (OSError, SafetensorError) as error:
            raise ConfigError(
                f"{name}={folder}: {file.name} is not whole ({one_line(error, 200)})"
            ) from error
    return sizes


def check_bucket(config: DictConfig, sizes: Sequence[int], path: str) -> None:
    """Make sure that the weight sync can carry a model on a CPU, through shared memory.

    verl stops at the first sync where a weight is larger than a bucket, and the system silently
    kills the trainer if the bucket does not fit. On a GPU a larger weight is sent on its own.
    """
    from verl.utils.torch_dtypes import PrecisionType

    dtype = setting(config, "actor_rollout_ref.actor.fsdp_config.model_dtype")
    bytes_each, bucket_mb = PrecisionType.to_dtype(dtype).itemsize, setting(config, _BUCKET)
    whole_mb, largest_mb = (
        -(-number * bytes_each // 2**20) for number in (sum(sizes), max(sizes, default=0))
    )
    free_mb = shutil.disk_usage("/dev/shm").free // 2**20
    needed_mb = min(whole_mb, bucket_mb)
    if largest_mb > bucket_mb or needed_mb > free_mb:
        raise ConfigError(
            f"{_BUCKET}={bucket_mb}: a sync of {MODEL}={path} needs {largest_mb} MB for its "
            f"largest weight, and {needed_mb} MB of shared memory, where {free_mb} MB are free "
            f"(docker run --shm-size); give {largest_mb} or more"
        )


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
    tokenizer.chat_template = setting(config, _TEMPLATE) or tokenizer.chat_template
    if not tokenizer.chat_template:
        raise ConfigError(f"{MODEL}={path}: the tokenizer has no chat template; set {_TEMPLATE}")
    if tokenizer.eos_token_id is None:
        raise ConfigError(
            f"{MODEL}={path}: the tokenizer has no eos token, so no response would ever end; set "
            f"eos_token in tokenizer_config.json"
        )
    return tokenizer


def _warnings(
    config: DictConfig, tokenizer: Any, options: dict[str, Any], place: str
) -> Iterator[str]:
    """Yield what a chat template and its stops do that a run should know of."""
    with_loops = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"])
    # transformers' own block for the tokens of the assistant means nothing here.
    plain = tokenizer.chat_template.replace("endgeneration", "endif")
    try:
        read = meta.find_undeclared_variables(
            with_loops.parse(plain.replace("% generation", "% if true"))
        )
    except TemplateError:
        read = options.keys()
    for name in options.keys() - read:
        yield (
            f"{_OPTIONS}.{name} is not read by the model's chat template; "
            f"it reads {', '.join(sorted(read))}"
        )
    if refuses_system(tokenizer, options):
        yield "the chat template refuses a system turn: such texts stand before the first user's"
    if unfixed_date(tokenizer, options):
        yield (
            "the chat template writes today's date into every prompt, so a run that resumes "
            f"tomorrow sees other prompts; fix it with +{_OPTIONS}.date_string='26 Jul 2024'"
        )
    from verl.utils.model import get_generation_config

    trust = bool(setting(config, f"{MODEL_NODE}.trust_remote_code"))
    ids = getattr(get_generation_config(place, trust_remote_code=trust), "eos_token_id", None)
    stops = set() if ids is None else {ids} if isinstance(ids, int) else set(ids)
    if stops and tokenizer.eos_token_id not in stops:
        ends = " or ".join(repr(tokenizer.decode([each])) for each in sorted(stops))
        yield (
            f"the tokenizer's end token is {tokenizer.eos_token!r}, the model's "
            f"(generation_config.json or config.json) is {ends}: a response may end at the wrong "
            f"one; set eos_token in {place}/tokenizer_config.json"
        )
    end = end_of_turn(tokenizer, options)
    if end is not None and end not in stops | {tokenizer.eos_token_id}:
        yield (
            f"the chat template ends a response with {tokenizer.decode([end])!r}, at which vLLM "
            f"does not stop: {place}/generation_config.json has eos_token_id={sorted(stops)}; add "
            f"{end} to it"
        )
