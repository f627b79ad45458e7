"""Greedy answers of an exported folder in vLLM, as token ids; run by test_export.py."""

from __future__ import annotations

import json
import sys

from engines import ENGINE, prompts
from vllm import LLM, SamplingParams


def main(folder: str, count: str) -> None:
    llm = LLM(model=folder, **ENGINE)
    asked = [{"prompt_token_ids": ids} for ids in prompts(int(count))]
    outputs = llm.generate(asked, SamplingParams(temperature=0.0, max_tokens=64), use_tqdm=False)
    answers = [list(each.outputs[0].token_ids) for each in outputs]
    sys.stdout.write("\n" + json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
