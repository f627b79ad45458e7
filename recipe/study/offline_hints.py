"""Write the columns hint_level_1, hint_level_2, hint_level_3 with any served model.

hint prepare hints IN.parquet OUT.parquet --model NAME [--url http://localhost:8000/v1]

After a stop or a failure, the same command continues from the responses kept in OUT.answers.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from recipe.hint.hints.base import HintSource, WrittenText
from recipe.hint.methods import RELEASED
from recipe.hint.prompt import Message
from recipe.hint.settings import HintSettings, build_method, read_settings, read_texts
from recipe.problems.columns import check_target, read_problems, write_table
from recipe.problems.schema import HINT_COLUMN, HINT_COLUMN_PREFIX
from recipe.run.ending import Parser
from recipe.run.errors import DataError
from recipe.run.typed import finite

_NUMBERS = ("max_level", "max_tokens", "temperature", "top_p", "attempts", "seed")
_FAILED = "generation_failed"  # nothing is wrong with the problem: asking again may help
_NUM_ASKED = 256  # sets of hints asked for at once; the teacher has a limit of its own


def main(argv: Sequence[str]) -> None:
    parser = Parser("hint prepare hints", description=__doc__, allow_abbrev=False)
    parser.add_argument("input", type=Path, metavar="IN.parquet")
    parser.add_argument("output", type=Path, metavar="OUT.parquet")
    parser.add_argument("--model", required=True, help="name the endpoint knows it by")
    parser.add_argument("--url", dest="base_url", default="http://localhost:8000/v1")
    parser.add_argument("--api-key-env", metavar="NAME", help="variable that holds the key")
    parser.add_argument("--per-prompt", dest="num_ladders", type=int, default=1, metavar="N")
    parser.add_argument("--prompts", metavar="FILE.yaml", help="other texts, as in hint.prompts")
    parser.add_argument("--body", type=json.loads, default={}, metavar="JSON", help="more fields")
    defaults = HintSettings()
    for name in (*_NUMBERS, "num_parallel", "timeout_s", "num_retries"):
        default = getattr(defaults if name in _NUMBERS else defaults.teacher, name)
        kind = finite if isinstance(default, float) else int
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default)
    given = vars(parser.parse_args(argv))
    from recipe.hint.adapter.hint_sources import build_source
    from recipe.hint.hints.teacher import check_teacher

    in_path, out_path = given.pop("input"), given.pop("output")
    check_target(out_path)
    of_hints = {name: given.pop(name) for name in (*_NUMBERS, "prompts")}
    teacher = {**given, "cache_dir": str(out_path.with_suffix(".answers"))}
    settings = read_settings({"source": "teacher", "teacher": teacher, **of_hints})
    method = build_method({"method": RELEASED[0]}, settings)
    check_teacher(settings.teacher, os.environ)
    source = build_source(settings, read_texts(settings), method)
    assert source is not None
    sizes = settings.max_level, settings.teacher.num_ladders
    print(asyncio.run(write_offline_hints(in_path, out_path, source, *sizes)))


async def write_offline_hints(
    in_path: Path, out_path: Path, source: HintSource, max_level: int, per_prompt: int
) -> str:
    """Ask for ``per_prompt`` sets of hints per problem; write the file; return what to print.

    A column holds a text, or with ``per_prompt`` above 1 a list in which text i of every level is
    of one set; null (or empty) without hints. All other columns stay as they are stored.

    Raises:
        DataError: If the input breaks the contract, or the endpoint failed; no file is written.
    """

    async def no_policy(messages: list[Message], attempt: int) -> WrittenText:
        return WrittenText("", 0)

    problems, table = read_problems(in_path), pq.read_table(in_path)
    asks = [(problem, number) for problem in problems for number in range(per_prompt)]
    results = []
    with tqdm(desc="hints", total=len(asks), unit=" sets", delay=2, disable=None) as bar:
        for start in range(0, len(asks), _NUM_ASKED):
            some = asks[start : start + _NUM_ASKED]
            writing = (source.write(problem, no_policy, num_before=n) for problem, n in some)
            results += (found := await asyncio.gather(*writing))
            bar.update(len(some))
            if {each.status for each in found if each.calls} == {_FAILED}:  # not from the cache
                break  # the endpoint answers nobody any more
    if failed := [each.detail for each in results if each.status == _FAILED]:
        missing = len(failed) + len(asks) - len(results)
        raise DataError(
            f"{in_path}: {missing} of {len(asks)} sets of hints are missing, so no file is "
            f"written; the first: {failed[0]}. The same command continues from here"
        )
    old = [name for name in table.column_names if name.startswith(HINT_COLUMN_PREFIX)]
    table = table.drop_columns(old)
    ladders = [each.hints_L for each in results]
    ladders_P = [ladders[at : at + per_prompt] for at in range(0, len(ladders), per_prompt)]
    for level in range(1, max_level + 1):
        # Half of a surrogate pair is replaced: no file of text can hold it.
        texts_P = [
            [each[level - 1].encode("utf-8", "replace").decode() for each in some if each]
            for some in ladders_P
        ]
        kind, cells = pa.list_(pa.string()), texts_P
        if per_prompt == 1:
            kind, cells = pa.string(), [next(iter(texts), None) for texts in texts_P]
        table = table.append_column(HINT_COLUMN.format(level=level), pa.array(cells, kind))
    write_table(table, out_path)
    without = sum(not any(some) for some in ladders_P)
    statuses = sorted(Counter(each.status for each in results).items())
    counts = ", ".join(f"{count} {status}" for status, count in statuses)
    calls, tokens = sum(each.calls for each in results), sum(each.tokens for each in results)
    return (
        f"{out_path}: {len(problems)} problems, {without} without a hint\n"
        f"sets of hints: {counts}; {calls} requests, {tokens} tokens of responses"
    )
