"""Measure how much hints give away: scripts/reader.py MODEL FILE.parquet (with hint_level_N).

The reader must box the answer at once, without any work. By level: how often its greedy answer is
right, the answer's bits under the reader, and how many of them the hint saves.
"""

import math
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from recipe.hint.prompt import Texts, with_hint
from recipe.problems.columns import read_problems

BOX, BATCH = "\\boxed{", 64


def read(model, tokenizer, conversations, answers):
    """Return for each answer whether it is the greedy one, and its bits, shapes (N,) and (N,)."""
    rows = []
    for messages, answer in zip(conversations, answers, strict=True):
        prompt = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )
        start = tokenizer(prompt + BOX, add_special_tokens=False)["input_ids"]
        rows.append((start, tokenizer(answer + "}", add_special_tokens=False)["input_ids"]))
    is_right, bits = [], []
    for at in range(0, len(rows), BATCH):
        part = rows[at : at + BATCH]
        longest = max(len(start) + len(end) for start, end in part)
        ids = torch.zeros(len(part), longest, dtype=torch.long)
        for row, (start, end) in zip(ids, part, strict=True):
            row[: len(start) + len(end)] = torch.tensor(start + end)  # causal: padding is not seen
        with torch.no_grad():
            log_probs = torch.log_softmax(model(input_ids=ids).logits.float(), -1)
        for number, (start, end) in enumerate(part):
            own = log_probs[number, len(start) - 1 : len(start) + len(end) - 1]
            is_right.append(own.argmax(-1).tolist() == end)
            bits.append(-own[range(len(end)), end].sum().item() / math.log(2))
    return torch.tensor(is_right), torch.tensor(bits)


def main(model_path, file):
    """Print a line for each level."""
    tokenizer = AutoTokenizer.from_pretrained(model_path)
    model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32).eval()
    problems, texts = read_problems(file), Texts()
    answers = [each.answer for each in problems]
    _, alone = read(model, tokenizer, [each.messages for each in problems], answers)
    for level in range(len(problems[0].hints) + 1):
        hints = [each.hints[level - 1][0] if level else "" for each in problems]
        asked = [
            with_hint(each.messages, hint, texts) if hint else each.messages
            for each, hint in zip(problems, hints, strict=True)
        ]
        is_right, bits = read(model, tokenizer, asked, answers)
        saved = (alone - bits).mean().item()
        share = 100 * is_right.float().mean().item()
        print(f"level {level}  right {share:5.1f} %  answer {bits.mean():5.1f} bits  saved {saved:+.1f}")


main(*sys.argv[1:])
