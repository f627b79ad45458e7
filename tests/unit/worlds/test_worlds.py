"""The embedded worlds: facts of their tasks and corpora; the committed files are what is made."""

import asyncio
import hashlib
import itertools
import json
import random
import re
from collections import Counter

import pyarrow.parquet as pq
import pytest

from recipe import REPOSITORY
from recipe.hint.prompt import Texts
from recipe.hint.schema import Response
from recipe.hint.turns import Feedback, Place, PromptContext, Refine, Revise, Turn
from recipe.problems.schema import Problem, hint_columns
from recipe.verify.maths.grade import quick_verdict
from recipe.worlds import base, build, chains, plans, three_turn, two_turn
from recipe.worlds.build import ONE_TURN, WORLDS
from recipe.worlds.two_turn import Puzzle

IN_DATA = {name: world for name, world in WORLDS.items() if name != "foreign"}
COMMITTED = pytest.mark.parametrize("world", IN_DATA.values(), ids=IN_DATA)
ALL = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
TINY_TOKENIZER = base.build_tokenizer(chains.pieces())


_FILES = {}


def problem_files(world):
    """The problems of a world, drawn once: those of the foreign one take seconds."""
    key = world.source, world.tables
    if key not in _FILES:
        _FILES[key] = build.problem_files(world)
    return _FILES[key]


def drawn(draw, count, kind=None):
    rng = random.Random(0)
    found = [draw(rng) for _ in range(count)]
    return [each for each in found if kind in (None, each.kind)]


def replies(example):
    return [turn["content"] for turn in example.messages if turn["role"] == "assistant"]


def boxed(text):
    return re.findall(r"\\boxed\{(\d+)\}", text)[-1]


def worked(text):
    """What the last step of the work says."""
    return re.findall(r"\nD=(\d)", text)[-1]


def shown(hint):
    """Step position -> result."""
    return {"ABCDE".index(label): digit for label, digit in re.findall(r"([A-E])=(\d)", hint)}


# the committed files


@COMMITTED
def test_the_committed_files_are_the_listed_ones_and_are_made_again(world, tmp_path):
    folder = REPOSITORY / "data" / world.source
    lines = (folder / build.HASHES_NAME).read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    assert build.file_hashes(folder) == listed
    read = {path.stem: pq.read_table(path).to_pylist() for path in folder.glob("*.parquet")}
    assert problem_files(world) == read
    base.build_tokenizer(world.task.pieces()).save_pretrained(tmp_path)
    made = {
        f"base/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tmp_path.iterdir()
    }
    assert "base/tokenizer.json" in made
    assert made.items() <= listed.items()
    # vLLM's attention on a CPU has kernels for heads of 32, 64, 80, ...; else the engine dies.
    assert json.loads((folder / "base/config.json").read_text())["head_dim"] == 32


def test_a_part_that_is_made_alone_has_its_files_byte_for_byte(tmp_path):
    build.main(["--world", "two_turn", "--problems", "--out", str(tmp_path)])
    for name in ("train", "val_easy", "val_hard"):
        made = (tmp_path / f"{name}.parquet").read_bytes()
        assert made == (REPOSITORY / f"data/two_turn/{name}.parquet").read_bytes()


def test_a_base_is_pretrained_and_written_with_how_it_was_made(tmp_path):
    world = build.replace(WORLDS["two_turn"], recipe=base.Recipe(steps=2))
    build.build_base(world, tmp_path, "a command")
    facts = json.loads((tmp_path / build.FACTS_NAME).read_text())
    assert (facts["recipe"]["steps"], facts["command"]) == (2, "a command")
    config = json.loads((tmp_path / "base/config.json").read_text())
    assert config == json.loads((REPOSITORY / "data/two_turn/base/config.json").read_text())


# problems


@ALL
def test_no_problem_is_in_training_and_validation_and_every_id_names_one_problem(world):
    files = problem_files(world)
    train, val = (
        {row["problem"] for stem, rows in files.items() if stem.startswith(part) for row in rows}
        for part in ("train", "val")
    )
    assert not train & val
    for stem, sizes in world.train_sizes.items():
        sources = Counter(row["data_source"] for row in files[stem])
        assert sources == Counter({f"{world.source}/{name}": n for name, n in sizes.items() if n})
    pairs = {
        (row["extra_info"]["index"], row["problem"]) for rows in files.values() for row in rows
    }
    assert len(pairs) == len({index for index, _ in pairs}) == len(train | val)


@ALL
def test_the_verifier_takes_a_solution_and_no_other_answer(world):
    for row in problem_files(world)["val_hard"]:
        # Integers are compared: 01234 would be 1234.
        assert row["answer"][0] != "0" or len(row["answer"]) == 1
        for digit in range(10):
            box = f"boxed{{{digit}{row['answer'][1:]}}}"
            text = re.sub(r"boxed\{\d+\}", box, row["solution"])
            verdict = quick_verdict(text, row["answer"], problem=row["problem"])
            assert verdict.score == (row["solution"] == text)


def test_a_chain_reads_as_steps_and_a_box():
    inc, dbl = chains.EASY.operations[0], chains.EASY.operations[2]
    chain = chains.Chain(4, (inc, dbl), (5, 0))
    assert chain.problem == "Begin with 4.\nA: inc\nB: dbl\nGive the code of all results."
    assert chain.solution == "A: inc 4, A=5\nB: dbl 5, B=0\n\\boxed{50}"
    # 9 + 1 = 10, 2 * 0 = 0, 0 - 1 = -1, 9 - 1 = 8
    puzzle = Puzzle(9, ("inc", "dbl", "dec", "dec"))
    assert puzzle.problem == (
        "Begin with 9.\nA: inc\nB: dbl\nC: dec\nD: dec\nBox the last result, then show the work."
    )
    assert puzzle.solution == "\\boxed{8}\nA=0\nB=0\nC=9\nD=8"


def test_another_world_has_secret_tables_and_problems_of_its_own_and_the_same_words():
    other = build.replace(ONE_TURN, tables=7)
    drov = chains.hard_family(7).operations[3]
    assert drov.table != chains.HARD.operations[3].table
    files, others = problem_files(ONE_TURN), problem_files(other)
    sizes, asked = [], []
    for each in (files, others):
        sizes.append({stem: len(rows) for stem, rows in each.items()})
        asked.append({row["problem"] for rows in each.values() for row in rows})
    assert sizes[0] == sizes[1]
    assert len(asked[0] & asked[1]) / len(asked[0]) < 0.05
    for row in others["val_hard"]:  # its answers are those of its own tables
        if "\nA: drov\n" in row["problem"]:
            assert int(row["answer"][0]) == drov.table[int(row["problem"][11])]


def test_an_easy_puzzle_follows_from_its_end():
    for puzzle in two_turn.distinct("easy", 300, 0, random.Random(0)):
        answers = {
            Puzzle(start, (*first, *puzzle.operations[-2:])).answer
            for start in range(10)
            for first in itertools.product(("inc", "tri"), repeat=2)
        }
        assert answers == {puzzle.answer}


@pytest.mark.parametrize(("stem", "num_sets"), [("train_hints", 1), ("train_hints_10", 10)])
def test_hints_grow_with_the_level_are_true_and_never_give_all(stem, num_sets):
    for row in problem_files(ONE_TURN)[stem]:
        levels = hint_columns(row)
        assert [len(texts) for texts in levels] == [num_sets] * chains.NUM_LEVELS
        results = dict(enumerate(row["answer"])).items()
        for hints in zip(*levels, strict=True):
            first, second, third = (shown(hint).items() for hint in hints)
            assert first < second < third < results


# the foreign world: A is 4, C is A plus 3, B is C times 3


TOLD = [plans.Quantity("C", 3, "plus", "A"), plans.Quantity("B", 3, "times", "C")]
SMALL = plans.Puzzle((*TOLD, plans.Quantity("A", 4)), ("A", "C", "B"))


def test_a_reference_has_formulas_where_the_base_has_words():
    assert SMALL.problem.splitlines()[:3] == ["C is A plus 3.", "B is C times 3.", "A is 4."]
    # C = 4 + 3 = 7, B = 7 * 3 = 21, modulo 10: 1
    assert SMALL.answer == "417"
    lines = SMALL.solution.splitlines()[:3]
    assert lines == ["A <- 4", "C <- A+3 <- 4+3 -> 7", "B <- C*3 <- 7*3 -> 1"]
    own = SMALL.more_columns["native"].splitlines()[:3]
    assert own == ["A is 4, A=4", "C is A plus 3, A=4, C=7", "B is C times 3, C=7, B=1"]
    formal = plans.respond(SMALL, "ACB", random.Random(0), p_true=1.0, p_formulas=1.0)
    assert formal == SMALL.solution


def test_a_problem_to_be_read_in_turn_is_what_the_habit_is_right_about():
    in_turn = plans.Puzzle(SMALL.told, ("C", "B", "A"), plans.IN_TURN_CLOSING)
    # C = 0 + 3 = 3, since A is not known yet; B = 3 * 3 = 9
    assert in_turn.answer == "493"
    rng = random.Random(0)
    assert boxed(plans.respond(in_turn, (), rng, p_true=1.0)) == "493"
    assert boxed(plans.respond(in_turn, "ACB", rng, p_true=1.0)) == "417"  # an order that works


def test_plans_are_all_orders_that_work_or_have_two_labels_out_of_place():
    # B and D need A; C needs B: three orders, of which a plan shows the first four labels.
    told = [plans.Quantity("A", 4), plans.Quantity("B", 1, "plus", "A")]
    told += [plans.Quantity("C", 2, "plus", "B"), plans.Quantity("D", 3, "plus", "A")]
    puzzle, rng = plans.Puzzle((*told,), (*"ABCD",)), random.Random(0)
    drawn = [plans.hints_of(plans.draw_order(puzzle, rng)) for _ in range(100)]
    assert {levels[2] for levels in drawn} == {
        f"Order: {each}" for each in ("A, B, C, D", "A, B, D, C", "A, D, B, C")
    }
    assert all(
        levels[2].startswith(levels[1]) and levels[1].startswith(levels[0]) for levels in drawn
    )
    wrong = [plans.hints_of(plans.draw_order(puzzle, rng, p_ordered=0.0)) for _ in range(400)]
    assert any(levels[0] != "Order: A" for levels in wrong)


def test_luck_is_the_share_of_the_bases_responses_that_are_right():
    # First A by looking, 0.1, or by a lucky guess in C's place, 0.9 * 0.1. After A: C is next in
    # the text. After a guessed C: B is next, then A is left. 0.1 + 0.09 * (0.9 + 0.1) = 0.19
    assert SMALL.luck() == pytest.approx(0.19)
    rng = random.Random(0)
    right = sum(boxed(plans.respond(SMALL, (), rng, 1.0)) == "417" for _ in range(4000))
    assert right / 4000 == pytest.approx(0.19, abs=0.02)  # sqrt(.19 * .81 / 4000) = .006
    guided = sum(boxed(plans.respond(SMALL, "AC", rng, 1.0)) == "417" for _ in range(100))
    assert guided == 100


def test_problems_of_training_and_validation_share_no_step_and_no_template():
    puzzles = plans.distinct("hard", 12, 12, random.Random(1))
    parts = [set().union(*(each.parts for each in half)) for half in (puzzles[:12], puzzles[12:])]
    assert len(parts[0]) > 12 and len(parts[1]) > 12 and not parts[0] & parts[1]
    assert all(each.luck() <= plans.MOST_LUCK for each in puzzles)


def works(hint, problem):
    """Whether a plan's labels come after those that their definitions name."""
    needs = dict(re.findall(r"^(\w) is (\w)", problem, re.MULTILINE))
    order = hint.removeprefix("Order: ").split(", ")
    return all(
        needs[label].isdigit() or needs[label] in order[:at] for at, label in enumerate(order)
    )


def test_controls_have_the_shape_of_hints_and_not_their_content():
    files = problem_files(WORLDS["foreign"])
    hints, others, filler = (
        [hint_columns(row) for row in files[f"train_hints{name}"]]
        for name in ("", "_other", "_filler")
    )
    told = [row["problem"] for row in files["train"]]
    longest, of_others = [each[2][0] for each in hints], [each[2][0] for each in others]
    assert all(map(works, longest, told))
    assert all(map(works, of_others, [*told[1:], told[0]])) and not all(map(works, of_others, told))
    assert [*map(list, filler[0])] == [[plans.plan(["so"] * size)] for size in plans.SHOWN]


# corpora


def test_hinted_responses_of_the_corpus_keep_every_hinted_result():
    samples = drawn(chains.draw, 300, "hinted")
    assert len(samples) > 100  # 45 % of 300 is 135
    for sample in samples:
        hint = sample.messages[-2]["content"].rsplit("\n", 1)[1]
        code = boxed(sample.messages[-1]["content"])
        assert shown(hint).items() <= dict(enumerate(code)).items()


def revised():
    """What became of a box that the work contradicts."""
    for first, second in map(replies, drawn(two_turn.draw, 12_000, "revise")):
        before, right, after = boxed(first), worked(first), boxed(second)
        if before != right:
            yield "keep" if after == before else "fix" if after == right else "blind"


def stated():
    """What a hard step is said to give."""
    rng, operation = random.Random(0), chains.HARD.operations[0]
    for _ in range(4000):
        said = operation.believed(4, rng)
        yield {operation.table[4]: "right", operation.misconception[4]: "popular"}.get(said)


@pytest.mark.parametrize(
    ("outcomes", "shares", "tolerance"),
    [
        # standard errors at 4,000: of 20 % .006, of 60 % .008
        (stated, {"right": 0.2, "popular": 0.6}, 0.03),
        # at 4,000: sqrt(.04 * .96 / 4000) = .003, of the others .007
        (revised, {"fix": two_turn.P_FIX}, 0.012),
        (revised, {"keep": two_turn.P_KEEP, "blind": two_turn.P_BLIND}, 0.03),
        # 3,000: sqrt(.6 * .4 / 3000) = .009
        (
            lambda: (replies(each)[0] for each in drawn(three_turn.draw, 20_000, "guide")),
            three_turn.FEEDBACK,
            0.03,
        ),
    ],
)
def test_the_corpus_says_things_in_the_stated_shares(outcomes, shares, tolerance):
    found = Counter(outcomes())
    assert found.total() > 2500
    for name, share in shares.items():
        assert found[name] / found.total() == pytest.approx(share, abs=tolerance)


def test_a_comparison_boxes_what_the_work_says_and_a_refinement_what_the_feedback_says():
    for first, second in map(replies, drawn(two_turn.draw, 1000, "compare")):
        assert boxed(second) == worked(first)
    for example in drawn(three_turn.draw, 1000, "refine"):
        first, second = replies(example)
        feedback = example.messages[2]["content"].splitlines()[1]
        before, right, after = boxed(first), worked(first), boxed(second)
        assert first.split("\n")[1:] == second.split("\n")[1:]
        expected = {three_turn.KEEP: after == before, three_turn.READ: after == right}
        assert expected.get(feedback, after not in (before, right))
    assert not any(letter.isdigit() for text in three_turn.FEEDBACK for letter in text)


def built(spec, problem_text, attempt, feedback=None):
    """The messages that the recipe builds after these responses."""
    first, second = Place(0, 0), Place(1, 0)
    messages = tuple(two_turn.question(problem_text))
    problem = Problem("p", messages, problem_text, "", "1", "test")
    turns = {first: Turn(messages, [], Response([], [], attempt, False))}
    turns[second] = Turn(messages, [], Response([], [], feedback or "", False), parent=first)
    context = PromptContext(
        *(problem, Texts(), "paper", "cut"),
        render=lambda messages, **_: [],
        fits=lambda prompt_ids: True,
        write_hints=lambda: pytest.fail("no hints here"),
        turn=turns.__getitem__,
    )
    parent = turns[second if feedback else first]
    return list(asyncio.run(spec.build(context, parent)).messages)


def test_the_bases_learn_under_the_prompts_that_the_methods_build():
    for example in drawn(two_turn.draw, 200, "revise"):
        asked, first = (turn["content"] for turn in example.messages[:2])
        assert built(Revise(), asked, first) == example.messages[:3]
    for example in drawn(three_turn.draw, 200):
        if example.kind == "guide":
            frame = Texts().guide_user.replace("{attempt}", "{problem}")
            start, middle, end = frame.split("{problem}")
            body = example.messages[1]["content"].removeprefix(start).removesuffix(end)
            assert built(Feedback(), *body.split(middle)) == example.messages[:2]
        else:
            asked, first, instruction = (turn["content"] for turn in example.messages[:3])
            feedback = instruction.splitlines()[1]
            assert built(Refine(), asked, first, feedback) == example.messages[:3]


# tokens


def test_a_solution_begun_at_the_end_of_a_line_has_the_tokens_of_the_whole_one():
    # What the policy goes on from is what it would have said itself, token by token.
    for row in problem_files(ONE_TURN)["val_hard"][:20]:
        whole = TINY_TOKENIZER(row["solution"])["input_ids"]
        for place in (match.start() for match in re.finditer("\n", row["solution"])):
            head, rest = row["solution"][:place], row["solution"][place:]
            parts = TINY_TOKENIZER([head, rest])["input_ids"]
            assert [*parts[0], *parts[1]] == whole


@ALL
def test_a_batch_learns_the_responses_and_nothing_else(world):
    made = base.build_tokenizer(world.task.pieces())
    rows = next(base.batches(made, world.recipe, world.of_task("draw")))
    rng = random.Random(f"corpus/{world.recipe.seed}")
    conversations = [world.of_task("draw")(rng) for _ in range(world.recipe.batch_size)]
    learnt = [made.decode(list(itertools.compress(*row))) for row in rows]
    ends = ["".join(text + made.eos_token for text in replies(each)) for each in conversations]
    assert sorted(learnt) == sorted(ends)
    # A conversation keeps its tokens as it goes on; nobody generates the last line break.
    wholes = [
        made.apply_chat_template(each.messages, return_dict=False)[: -len(made("\n")["input_ids"])]
        for each in conversations
    ]
    assert sorted(ids for ids, _ in rows) == sorted(wholes)
