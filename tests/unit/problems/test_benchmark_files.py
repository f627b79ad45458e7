"""The real public files, where the machine has them, become parquet files, twice the same."""

import os
from pathlib import Path

import pytest

from recipe.hint import main_prepare
from recipe.problems import checks
from recipe.problems.columns import make_row, read_problems
from recipe.problems.prepare import Prepared, read_local

FOLDER = os.environ.get("HINT_BENCHMARK_DATA", "")
# File, arguments, number of problems (wc -l of the file).
FILES = [
    ("gsm8k_train", ["gsm8k", "--split", "train"], 7473),
    ("gsm8k_test", ["gsm8k"], 1319),
    ("math500", ["math500"], 500),
    ("aime24", ["aime24"], 30),
    ("olympiadbench", ["olympiadbench"], 675),
    ("mmlu_pro_test_sample", ["mmlu_pro"], 6263),
    ("mbpp_sanitized", ["mbpp", "--split", "all"], 427),
]

needs_files = pytest.mark.skipif(
    not FOLDER, reason="HINT_BENCHMARK_DATA names no folder with the real files"
)


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize(("name", "arguments", "num_rows"), FILES, ids=[each[0] for each in FILES])
def test_a_public_file_becomes_the_same_bytes_twice(tmp_path, name, arguments, num_rows):
    outputs = [tmp_path / f"{number}.parquet" for number in range(2)]
    source = Path(FOLDER, f"{name}.jsonl")
    for output in outputs:
        main_prepare.main([*arguments, str(output), "--from", str(source)])
    assert len(read_problems(outputs[0])) == num_rows
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


@needs_files
def test_reworded_benchmark_problems_are_found_in_a_training_set(tmp_path):
    bench = tmp_path / "math500.parquet"
    main_prepare.main(["math500", str(bench), "--from", f"{FOLDER}/math500.jsonl"])
    known = read_problems(bench)
    planted = [known[number] for number in range(0, 500, 67)]  # 8 problems, one in 67
    train = read_local(Path(FOLDER, "gsm8k_train.jsonl")).rows
    rows = [make_row(reworded(each.text), each.answer, row_id=each.id) for each in planted]
    mixed = Prepared("mixed", (*train, *rows), tuple(map(str, range(len(train) + len(rows)))))
    (found,) = checks.overlaps(mixed, [bench], 10, 0.5)
    expected = [f"{len(train) + n} = {each.id} (100%)" for n, each in enumerate(planted)]
    assert list(found.places) == expected


@needs_files
def reworded(text):
    """Case turned outside of LaTeX, and spaces added."""
    is_latex = "\\" in text
    shouted = text if is_latex else text.swapcase()
    return f"\n {shouted.replace(' ', '   ').replace('$', ' $ ')}\n"
