"""The embedded world: facts of the task, and that the committed files are what the code makes."""

import hashlib
import json
import random
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from math_verify import parse, verify

from recipe.hint.hints.self_generated import hint_request
from recipe.hint.prompt import HINT_SYSTEM_PROMPT, Texts, with_hint
from recipe.problems.schema import hint_columns
from recipe.worlds import base, build, chains
from recipe.worlds.build import ONE_TURN, TWO_TURN, with_other_tables

ROOT = Path(__file__).parents[3]
TINY = ROOT / ONE_TURN.folder
WORLDS = pytest.mark.parametrize("world", [ONE_TURN, TWO_TURN], ids=lambda world: world.source)


def hard_chain(seed=3):
    return chains.true_chain(chains.HARD, random.Random(seed))


def tiny_tokenizer():
    return base.build_tokenizer(ONE_TURN.pieces)


def replies(example):
    return [turn["content"] for turn in example.messages if turn["role"] == "assistant"]


def listed_hashes(folder):
    lines = (folder / build.HASHES_NAME).read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def token_count(messages, built):
    text = built.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return len(built(text)["input_ids"])


# the committed files


@WORLDS
def test_every_committed_file_has_the_listed_hash_and_no_file_is_unlisted(world):
    folder = ROOT / world.folder
    assert dict(build.file_hashes(folder)) == listed_hashes(folder)


@WORLDS
def test_the_problem_files_are_regenerated_row_for_row(world):
    read = {
        path.stem: pq.read_table(path).to_pylist()
        for path in (ROOT / world.folder).glob("*.parquet")
    }
    assert build.problem_files(world) == read


@WORLDS
def test_the_tokenizer_files_are_regenerated_byte_for_byte(world, tmp_path):
    base.build_tokenizer(world.pieces).save_pretrained(tmp_path)
    made = {
        f"base/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tmp_path.iterdir()
    }
    assert "base/tokenizer.json" in made
    assert made.items() <= listed_hashes(ROOT / world.folder).items()


@WORLDS
def test_a_base_has_heads_that_vllm_serves_on_a_cpu(world):
    config = json.loads((ROOT / world.folder / "base/config.json").read_text())
    # Its attention has kernels for 32, 64, 80, ...; with others the engine dies at the first group.
    assert config["hidden_size"] // config["num_attention_heads"] == config["head_dim"] == 32


# problems


def test_the_answer_is_the_code_of_the_results_of_the_tables():
    for family in (chains.EASY, chains.HARD):
        chain = chains.true_chain(family, random.Random(5))
        digit, code = chain.start, ""
        for operation in chain.operations:
            digit = operation.table[digit]
            code += str(digit)
        assert chain.answer == code
        assert chains.boxed_code(chain.solution) == code


def test_hard_tables_and_misconceptions_are_permutations_that_never_agree():
    for operation in chains.HARD.operations:
        assert sorted(operation.table) == sorted(operation.misconception) == list(range(10))
        pairs = zip(operation.table, operation.misconception, strict=True)
        assert all(true != wrong for true, wrong in pairs)


def test_another_world_has_secret_tables_and_problems_of_its_own_and_the_same_words():
    other = with_other_tables(7)
    tables = [operation.table for operation in chains.hard_family(7).operations]
    assert tables != [operation.table for operation in chains.HARD.operations]
    files, others = build.problem_files(ONE_TURN), build.problem_files(other)
    assert {stem: len(rows) for stem, rows in others.items()} == {
        stem: len(rows) for stem, rows in files.items()
    }
    asked, others_asked = (
        {row["problem"] for rows in each.values() for row in rows} for each in (files, others)
    )
    assert len(asked & others_asked) / len(asked) < 0.05
    drov = chains.hard_family(7).operations[3]
    for row in others["val_hard"]:  # its answers are those of its own tables
        given, name = int(row["problem"][11]), row["problem"].split("\n")[1].removeprefix("A: ")
        if name == "drov":
            assert int(row["answer"][0]) == drov.table[given]
    vocabulary = base.build_tokenizer(other.pieces)
    assert vocabulary.get_vocab() == base.build_tokenizer(ONE_TURN.pieces).get_vocab()


def test_the_corpus_states_a_hard_step_right_one_time_in_five():
    rng, operation = random.Random(0), chains.HARD.operations[0]
    draws = [operation.believed(4, rng) for _ in range(4000)]
    # standard error sqrt(.2 * .8 / 4000) = .006; .6 likewise .008
    assert draws.count(operation.table[4]) / 4000 == pytest.approx(0.20, abs=0.025)
    assert draws.count(operation.misconception[4]) / 4000 == pytest.approx(0.60, abs=0.03)


def test_a_solution_reads_as_steps_and_a_box():
    inc, dbl = chains.EASY.operations[0], chains.EASY.operations[2]
    chain = chains.Chain(4, (inc, dbl), (5, 0))
    assert chain.problem == "Begin with 4.\nA: inc\nB: dbl\nGive the code of all results."
    assert chain.solution == "A: inc 4, A=5\nB: dbl 5, B=0\n\\boxed{50}"


def test_no_answer_begins_with_zero_so_equal_integers_are_equal_codes():
    rows = [row for rows in build.problem_files(ONE_TURN).values() for row in rows]
    assert all(row["answer"][0] != "0" for row in rows)
    # why it matters: the verifier takes both for the integer 1234
    assert verify(parse("\\boxed{1234}"), parse("\\boxed{01234}"))
    assert not verify(parse("\\boxed{12340}"), parse("\\boxed{1234}"))


def test_no_problem_is_in_training_and_validation_and_every_id_names_one_problem():
    files = build.problem_files(ONE_TURN)
    train = {row["problem"] for row in files["train_large"]}
    held_out = [row["problem"] for stem in ("val_easy", "val_hard") for row in files[stem]]
    assert len(set(held_out)) == len(held_out) == 100 + 200
    assert len(train) == 256 + 256
    assert train.isdisjoint(held_out)
    ids = {row["extra_info"]["index"] for rows in files.values() for row in rows}
    assert len(ids) == 512 + 300


def test_the_training_files_nest_and_hold_as_many_easy_as_hard_problems():
    files = build.problem_files(ONE_TURN)
    ids = {
        stem: {row["extra_info"]["index"] for row in files[stem]} for stem in ONE_TURN.train_sizes
    }
    assert ids["train_small"] < ids["train"] < ids["train_large"]
    sources = [row["data_source"] for row in files["train"]]
    assert (sources.count("tiny/easy"), sources.count("tiny/hard")) == (48, 112)


@pytest.mark.parametrize(("stem", "num_sets"), build.HINT_FILES.items())
def test_hints_written_beforehand_are_sets_that_nest_and_show_true_results(stem, num_sets):
    files = build.problem_files(ONE_TURN)
    assert [row["problem"] for row in files[stem]] == [row["problem"] for row in files["train"]]
    for row in files[stem]:
        levels = hint_columns(row)
        assert [len(texts) for texts in levels] == [num_sets] * chains.NUM_LEVELS
        results = [int(digit) for digit in row["answer"]]
        for hints in zip(*levels, strict=True):
            shown = [chains.shown_results(hint) for hint in hints]
            assert tuple(map(len, shown)) == {4: (1, 2, 3), 5: (1, 3, 4)}[len(results)]
            assert shown[0].items() <= shown[1].items() <= shown[2].items()
            assert chains.is_faithful(hints[-1], results)
    # Ten draws of 3 results of 5, of which there are C(5, 3) = 10 choices.
    if num_sets > 1:
        hard = [row for row in files[stem] if row["data_source"] == "tiny/hard"]
        assert all(len(set(row["hint_level_2"])) > 2 for row in hard)


@WORLDS
def test_a_solution_begun_at_the_end_of_a_line_has_the_tokens_of_the_whole_one(world):
    # What the policy goes on from is what it would have said itself, token by token.
    built = base.build_tokenizer(world.pieces)

    def ids(text):
        return built(text, add_special_tokens=False)["input_ids"]

    for family in build.VAL_SIZES:
        for item in world.draw_items(family, 20, random.Random(5)):
            whole = ids(item.solution)
            for place in (match.start() for match in re.finditer("\n", item.solution)):
                head, rest = item.solution[:place], item.solution[place:]
                assert [*ids(head), *ids(rest)] == whole


# hints


def test_no_hint_shows_all_results_or_the_code():
    rng = random.Random(2)
    for num_steps in chains.LENGTHS:
        chain = chains.Chain(1, chains.HARD.operations[:num_steps], (7,) * num_steps)
        for hint in chains.hints_of(chain, rng):
            assert chains.is_faithful(hint, chain.results)
            assert chain.answer not in hint


def test_a_ladder_survives_its_reply():
    hints = chains.hints_of(hard_chain(), random.Random(0))
    response = chains.hint_response(hints)
    assert response.startswith("```json\n{") and response.endswith("}\n```")
    assert chains.read_hint_response(response) == hints


def test_hinted_responses_of_the_corpus_keep_every_hinted_result():
    rng = random.Random(4)
    drawn = [chains.draw(rng) for _ in range(300)]
    samples = [sample for sample in drawn if sample.kind == "hinted"]
    for sample in samples:
        hint = sample.messages[-2]["content"].rsplit("\n", 1)[1]
        code = chains.boxed_code(sample.messages[-1]["content"])
        assert all(code[step] == str(digit) for step, digit in chains.shown_results(hint).items())
    assert len(samples) > 100  # 45 % of 300 is 135


# tokenizer


@pytest.mark.parametrize(
    "text",
    [
        "Natalia sold 48 clips, and 9, then half: 48/2 = <<48/2=24>>24.\n#### 72",
        'naïve café ☃ 日本語 🙂\t\r\n  {"a": [1, 2]}',
        "zorp zorping A=12 B: \\boxed{\\frac{1}{2}}",
        HINT_SYSTEM_PROMPT + "!",
        " 9, , A: ",
    ],
)
def test_any_text_survives_encoding(text):
    built = tiny_tokenizer()
    assert built.decode(built(text)["input_ids"]) == text


def test_prompts_and_responses_are_short():
    built, chain = tiny_tokenizer(), hard_chain()
    messages = chains.question(chain.problem)
    hints = chains.hints_of(chain, random.Random(0))
    # system turn 4 + 1, user turn 4 + (3 + 2 * 5 + 1), opened assistant turn 2
    assert token_count(messages, built) == 25
    # + lead 1 + four results of 2 + three commas
    assert token_count(with_hint(messages, hints[2], Texts()), built) == 25 + 12
    assert token_count(hint_request(Texts(), chain.problem, chain.solution), built) <= 120
    # five steps of label, name, input, label, result, then the box: 5 * 5 + 1 + 5 + 1
    assert len(built(chain.solution)["input_ids"]) == 32
    assert len(built(chains.hint_response(hints))["input_ids"]) <= 32


@WORLDS
def test_a_batch_learns_the_responses_and_nothing_else(world):
    made = base.build_tokenizer(world.pieces)
    rows = next(base.batches(made, world.recipe, world.draw))
    rng = random.Random(f"corpus/{world.recipe.seed}")
    conversations = [world.draw(rng) for _ in range(world.recipe.batch_size)]
    learnt = [
        made.decode([token for token, is_learnt in zip(*row, strict=True) if is_learnt])
        for row in rows
    ]
    ends = ["".join(text + made.eos_token for text in replies(each)) for each in conversations]
    assert sorted(learnt) == sorted(ends)
    lengths = [len(ids) for ids, _ in rows]
    assert lengths == sorted(lengths)
