"""The HTML page: what it holds, what it leaves out, and what text cannot do to it."""

import base64
import json
import random
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from ends import code_of
from hypothesis import given
from hypothesis import strategies as st
from page_runs import HOSTILE, metrics, record, sample, talk, write_run

from recipe.hint.main_report import main
from recipe.run.errors import DataError
from recipe.study.campaign import read_campaign
from recipe.study.report.campaign_folder import read_runs
from recipe.study.report.page.arms import changed_settings, group_arms
from recipe.study.report.page.charts import all_charts, sources_of
from recipe.study.report.page.folder import read_folder
from recipe.study.report.page.numbers import numbers_of
from recipe.study.report.page.payload import compact_runs
from recipe.study.report.page.render import render_page
from recipe.study.report.page.visits import read_visit, stop_reason

RANDOM = random.Random(1)


def noise(count, of="0123456789abcdef"):
    return "".join(RANDOM.choices(of, k=count))


def data_of(page):
    packed = re.search(r'id="data">([^<]*)<', page)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (record(1, "a", "0010"), "1 of 4 right at level 0"),
        (record(1, "a", "00", "00", "11"), "2 of 2 right at level 2"),
        (record(1, "a", "00", "00", "00", "00"), "nothing right at level 3, the strongest"),
        (record(1, "a", "00"), "nothing right in the only round"),
        (
            record(1, "a", "00", is_off_schedule=True),
            "nothing right, outside the method's schedule",
        ),
        (record(1, "a", "00", "00"), "nothing right at level 1"),
    ],
)
def test_a_record_alone_says_why_sampling_stopped(row, reason):
    assert stop_reason(read_visit(row), max_level=3) == reason


def test_several_turns_stop_at_the_last_of_them():
    assert stop_reason(read_visit(talk(1, "a", "00", "01")), 3) == "1 of 2 right in the last turn"
    assert stop_reason(read_visit(talk(1, "a", "01", "00")), 0) == "nothing right in the last turn"


def test_a_round_without_a_prompt_is_why_it_stopped():
    row = record(1, "a", "00", "", rows=[[0, 0], [0, 1]])
    row["rounds"][1]["hint_status"] = "parse_failed"
    assert stop_reason(read_visit(row), 3) == "no prompt at level 1: parse_failed"


def test_several_turns_keep_their_roles_and_parents():
    row = record(1, "a", "01", "11", rows=[[0, 0], [1, 0]])
    row["rounds"][1] |= {"prompt": "feedback", "role": "teacher", "parents": [[0, 1], [0, 0]]}
    visit = read_visit(row)
    assert (visit.rounds[1].role, visit.rounds[1].parents) == ("teacher", ((0, 1), (0, 0)))


def test_damaged_lines_are_skipped_and_counted(tmp_path):
    folder = write_run(tmp_path / "run", [record(1, "a", "01")], [], [metrics(1)])
    with open(folder / "records.jsonl", "a") as file:
        file.write(
            '{"step": 1}\nnot json\n[1]\n' + json.dumps(record(2, "a", "11")) + '\n{"step": 3'
        )
    run = read_folder(folder)
    # Two whole records and three damaged lines; the last one has no end yet and is no damage.
    assert [visit.step for visit in run.visits] == [1, 2]
    assert run.damaged == {"records.jsonl": 3}
    assert "3 damaged lines of records.jsonl left out" in render_page([run], {})


@pytest.mark.parametrize(
    ("more", "num_damaged"),
    [
        ("since: 2020-01-01", 0),
        ("since: 2020-01-01T00:00:00Z", 0),
        ("data_of: !!binary aGk=", 0),
        ("names: !!set {a, b}", 0),
        ("own: &own {it: *own}", 1),
        ("own: &own [*own]", 1),
    ],
)
def test_any_value_of_a_config_is_shown_or_the_file_counts_as_damaged(tmp_path, more, num_damaged):
    folder = write_run(tmp_path / "run", [record(1, "a", "01")], [], [metrics(1)])
    with open(folder / "config.yaml", "a") as file:
        file.write(more)
    run = read_folder(folder)
    assert run.damaged["config.yaml"] == num_damaged
    # A name of the configuration is read among the run's own values.
    page = render_page([run], {"hint": {"run_dir": "${trainer.experiment_name}"}})
    assert ("2020-01-01" in page) == ("2020-01-01" in more)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.data())
def test_no_line_of_a_record_or_sample_ends_the_page(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("run")
    lines = {"records": record(1, "a", "00", "01"), "samples": sample(1, "a", (0, "wrong", "x"))}
    for line in lines.values():
        node = line
        for _ in range(data.draw(st.integers(1, 3))):  # one value somewhere in the line is another
            keys = list(node) if isinstance(node, dict) else range(len(node))
            key = data.draw(st.sampled_from(list(keys)))
            if not isinstance(node[key], dict | list) or not node[key]:
                break
            parent, node = node, node[key]
        else:
            node, key = parent, key
        node[key] = data.draw(json_values)
    write_run(folder, [lines["records"]], [lines["samples"]], [metrics(1)])
    run = read_folder(folder)
    found = compact_runs([run], 100_000)
    assert json.dumps(found, allow_nan=False)
    assert len(run.visits) + run.damaged["records.jsonl"] == 1
    assert len(run.samples) + run.damaged["samples.jsonl"] == 1


@pytest.mark.parametrize(
    ("arguments", "ending"),
    [
        (["html", "RUN", "-o", "RUN/records.jsonl"], ".html"),
        (["html", "RUN", "-o", "RUN/page"], ".html"),
        (["campaign", "RUN", "-o", "RUN/records.jsonl"], ".md"),
        (["campaign", "RUN", "-o", "RUN/a.md", "--figure", "RUN/records.jsonl"], ".svg"),
        (["RUN", "--figure", "RUN/f.png"], ".svg"),
        (["RUN", "--figure", "RUN/records.jsonl"], ".svg"),
    ],
)
def test_a_report_is_written_only_to_a_name_of_its_form(tmp_path, capsys, arguments, ending):
    records = tmp_path / "records.jsonl"
    records.write_text("kept")
    with pytest.raises(SystemExit, match="2"):
        main([each.replace("RUN", str(tmp_path)) for each in arguments])
    assert f"the name must end in {ending}" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["records.jsonl"]
    assert records.read_text() == "kept"


@pytest.mark.parametrize("word", ["compear", "htlm", "evaluaton", "sampls", "campagn", "kep"])
def test_a_misspelt_command_is_told_the_nearest_one(tmp_path, monkeypatch, capsys, word):
    monkeypatch.chdir(tmp_path)
    assert code_of(main, [word, "A", "B"]) == 2
    assert "is neither a folder nor a command; did you mean " in capsys.readouterr().err
    assert code_of(main, ["outputs/A"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_a_folder_that_is_no_run_ends_in_one_line(tmp_path, capsys):
    with pytest.raises(DataError, match="is not the folder of a run"):
        read_folder(tmp_path)
    assert code_of(main, ["html", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 2
    assert "is not the folder of a run" in capsys.readouterr().err


def test_a_run_that_has_only_begun_has_a_page(tmp_path):
    folder = write_run(tmp_path / "run")
    assert "step 0 of 9" in render_page([read_folder(folder)], {})


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_text_of_a_run_cannot_become_markup(tmp_path):
    quiet = write_run(
        tmp_path / "quiet", [record(1, "a", "01")], [sample(1, "a", (0, "wrong", "x"))]
    )
    loud = write_run(
        tmp_path / "<img src=x onerror=alert(1)>",
        [record(1, HOSTILE, "01")],
        [sample(1, HOSTILE, (0, "wrong", HOSTILE), problem=HOSTILE, answer=HOSTILE)],
        source=HOSTILE,
    )
    tags = []
    for folder in (quiet, loud):
        parser = Tags()
        parser.feed(render_page([read_folder(folder)], {}))
        tags.append([tag for tag, _ in parser.found])
    assert tags[0] == tags[1]


def test_nothing_of_the_page_is_fetched(tmp_path):
    page = render_page([read_folder(write_run(tmp_path / "run", rows=[metrics(1)]))], {})
    parser = Tags()
    parser.feed(page)
    addresses = [each.get("src") or each.get("href") for _, each in parser.found]
    assert [each for each in addresses if each and not each.startswith("#")] == []
    assert "default-src 'none'" in page


def test_visits_of_a_problem_are_kept_or_left_out_together(tmp_path):
    records = [record(step, f"p{n}", "0110", "1001") for step in range(1, 9) for n in range(200)]
    run = read_folder(write_run(tmp_path / "run", records, [sample(3, "p7", (0, "wrong", "x"))]))
    found = compact_runs([run], room_bytes=9_000)
    visits = found["runs"][0]["visits"]
    by_problem = [visit["problem"] for visit in visits]
    assert 0 < len(visits) < 1600
    assert all(by_problem.count(number) == 8 for number in set(by_problem))
    assert "p7" in by_problem  # it has a sample
    assert found["runs"][0]["num_visits"] == 1600


def test_odd_samples_of_every_step_come_before_random_ones(tmp_path):
    samples = [
        sample(step, f"{why}{step}", (0, "wrong", noise(900)), why=[why])
        for step in range(1, 40)
        for why in ("random", "leaked")
    ]
    run = read_folder(write_run(tmp_path / "run", samples=samples))
    # 78 texts of 450 bytes that nothing compresses: 35 kB; room_bytes are base64, 3 bytes in 4.
    kept = compact_runs([run], room_bytes=40_000)["runs"][0]["samples"]
    whys = [each["why"][0] for each in kept]
    assert whys.count("leaked") == 39 and 0 < whys.count("random") < 39


def test_a_page_stays_below_its_size(tmp_path):
    steps = range(1, 40)
    records = [
        record(step, f"p{n}", noise(9, "01"), noise(9, "01")) for step in steps for n in range(99)
    ]
    samples = [sample(step % 39 + 1, "p1", (0, "wrong", noise(6000))) for step in range(400)]
    run = read_folder(write_run(tmp_path / "run", records, samples, [metrics(1, 0.5)]))
    page = render_page([run], {}, max_bytes=2_100_000)
    assert len(page.encode()) < 2_100_000
    found = data_of(page)["runs"][0]
    assert 0 < len(found["visits"]) < 3861 == 39 * 99 == found["num_visits"]
    assert 0 < len(found["samples"]) < 400
    assert f"{len(found['visits'])} of 3861 visits and {len(found['samples'])} of 400" in page


def test_runs_that_differ_in_their_seed_are_one_arm(tmp_path):
    one = write_run(tmp_path / "one", seed=1)
    two = write_run(tmp_path / "two", seed=2)
    other = write_run(tmp_path / "other", seed=1, search={"probe_n": 2})
    plain = write_run(tmp_path / "plain", method="grpo")
    arms = group_arms([read_folder(each) for each in (one, plain, two, other)])
    assert [[run.name for run in arm.runs] for arm in arms] == [
        ["one", "two"],
        ["plain"],
        ["other"],
    ]
    assert arms[2].name == "sage probe_n=2"


def test_methods_whose_runs_have_their_names_are_arms_of_their_own(tmp_path):
    """A value that holds the run's name is no place of the run."""
    names = ("sage", "sage-light", "grpo")
    runs = [write_run(tmp_path / name, method=name) for name in names]
    arms = group_arms([read_folder(each) for each in runs])
    assert [arm.name for arm in arms] == list(names)


def test_a_run_with_the_seeds_of_another_is_no_second_seed(tmp_path):
    runs = [write_run(tmp_path / name, rows=[metrics(1, 0.4)], seed=1) for name in ("a", "b")]
    found = [read_folder(each) for each in (*runs, runs[0])]
    arms = group_arms(found)
    assert [len(arm.runs) for arm in arms] == [1, 1, 1]
    # Of one seed: no interval over seeds, a line for each.
    lines = [line for line in all_charts(arms)[0].figure.data if line.mode == "lines+markers"]
    assert len(lines) == 3


def test_long_ids_that_begin_alike_are_problems_of_their_own(tmp_path):
    names = ["x" * 400 + str(number) for number in range(80)]
    half = "p\ud800"
    run = write_run(tmp_path / "run", [record(1, name, "01") for name in (*names, half)])
    found = {visit.problem_id for visit in read_folder(run).visits}
    assert len(found) == 81
    for name in found:
        assert len(name) < 430 and name.encode()


def test_odd_names_of_metrics_cost_no_page(tmp_path):
    row = metrics(1) | {"hint/used_level_x": 1.0, "val-core/\ud800/acc/mean@4": 0.5}
    page = render_page([read_folder(write_run(tmp_path / "run", rows=[row]))], {}, 5_000_000)
    assert page.encode()


def test_rewards_of_ungraded_responses_are_numbers(tmp_path):
    row = record(1, "a", "01") | {"rewards": [2.0, 1.0]}
    row["rounds"][0]["accuracies"] = [2.0, 1.0]
    [run] = compact_runs([read_folder(write_run(tmp_path / "run", [row]))], 10**6)["runs"]
    assert [each["reward"] for each in run["visits"][0]["trained"]] == [2.0, 1.0]


def test_arms_of_a_campaign_are_named_by_their_folders(tmp_path):
    runs = [write_run(tmp_path / "x/seed-1"), write_run(tmp_path / "y/seed-1")]
    for run in runs:
        (run / "campaign.json").write_text("{}")
    arms = group_arms([read_folder(each) for each in runs])
    assert [arm.name for arm in arms] == ["x", "y"]
    assert [arm.runs[0].name for arm in arms] == ["x/seed-1", "y/seed-1"]


def test_a_bar_of_all_steps_is_their_sum_in_thousands_and_the_mean_of_the_seeds(tmp_path):
    one = write_run(tmp_path / "one", rows=[metrics(1), metrics(2)], seed=1)
    two = write_run(tmp_path / "two", rows=[metrics(1)], seed=2)
    charts = all_charts(group_arms([read_folder(one), read_folder(two)]))
    [tokens] = [each for each in charts if each.title.startswith("Tokens of all steps")]
    # A step: 900 sampled, of which 300 do not train, and 100 of hints; 2 + 1 steps, 2 seeds.
    sums = {bar.name: bar.x for bar in tokens.figure.data}
    assert sums == {
        "trained on": (0.9,), "sampled, not trained on": (0.45,), "writing hints": (0.15,)
    }  # fmt: skip
    assert all_charts(group_arms([read_folder(write_run(tmp_path / "none"))])) == []


def test_a_run_of_several_turns_has_charts_of_its_turns_and_none_of_hints(tmp_path):
    hinted = metrics(1, 0.5)
    plain = {name: value for name, value in hinted.items() if name != "hint/used_level_1"}
    turns = {"val-turns/tiny/hard/acc_t1": 0.25, "turns/wrong_to_right": 0.5}
    of_turns, of_hints = (
        {each.title: each for each in all_charts(group_arms([read_folder(run)]))}
        for run in (
            write_run(tmp_path / "turns", rows=[plain | turns], method="mlmt"),
            write_run(tmp_path / "hints", rows=[hinted]),
        )
    )
    [line] = of_turns["Accuracy of the first turn: tiny/hard"].figure.data
    assert line.y == (0.25,)
    [line] = of_turns["Wrong at first and right at last, share"].figure.data
    assert line.y == (0.5,)
    title = "Prompts trained under a hint, share"
    assert title in of_hints and title not in of_turns
    assert [each.section for each in of_turns.values()].count("levels") == 0


def test_what_is_zero_throughout_has_no_chart_and_a_run_alone_no_legend(tmp_path):
    run = read_folder(write_run(tmp_path / "run", rows=[metrics(1) | {"verify/ungraded": 0.0}]))
    titles = {chart.title: chart.figure for chart in all_charts(group_arms([run]))}
    assert "Verdicts not graded, share" not in titles
    assert not titles["Informative groups, share"].layout.showlegend
    assert "sage" not in "".join(titles) and 'id="arms"' not in render_page([run], {})


def test_the_first_screen_has_the_numbers_that_matter(tmp_path):
    rows = [metrics(1, 0.25) | {"hint/prompts_with_hint": 3.0}, metrics(2, 0.5)]
    runs = [read_folder(write_run(tmp_path / "run", rows=rows))]
    shown = [(each.value, each.change) for each in numbers_of(*group_arms(runs), ["tiny/hard"])]
    # 1000 tokens and 3 seconds a step.
    assert shown == [
        ("50.0 %", "+25.0 points"), ("75 → 75 %", ""), ("75 → 25 %", ""), ("2 k", ""), ("0.1", "")
    ]  # fmt: skip
    page = render_page(runs, {})
    assert page.index("75 → 25 %") < page.index("data-chart") < page.index("Machine and versions")


@pytest.mark.parametrize("name", ["sage", "two_turn", "three_turn", "second_world"])
def test_kept_campaigns_have_pages(name):
    folder = Path("docs/evidence") / name
    arms = group_arms(read_runs(folder))
    assert [arm.name for arm in arms] == [
        arm for arm in read_campaign(folder / "campaign.yaml").arms if (folder / arm).is_dir()
    ]
    assert all(numbers_of(arm, sources_of(arm.runs))[0].value != "-" for arm in arms)


def test_settings_that_follow_from_others_are_not_changes(tmp_path):
    run = read_folder(write_run(tmp_path / "run", max_tokens=64, longest=128))
    defaults = {
        "trainer": {"method": "sage", "experiment_name": "x", "total_training_steps": 9},
        "data": {"val_files": [], "val_max_samples": -1},
        "hint": {"run_dir": "y", "max_level": 3, "seed": 1, "max_tokens": 128}
        | {"longest": "${oc.select:hint.max_level}"},
    }
    changed = {row.name: (row.default, row.values) for row in changed_settings([run], defaults)}
    assert changed == {"hint.max_tokens": ("128", ("64",)), "hint.longest": ("3", ("128",))}
    defaults["hint"]["longest"] = "${trainer.total_training_steps}"
    run.config["hint"]["longest"] = 9
    assert [row.name for row in changed_settings([run], defaults)] == ["hint.max_tokens"]


@pytest.mark.parametrize(("count", "is_open"), [(3, True), (62, False)])
def test_many_settings_are_closed_so_that_the_curves_come_first(tmp_path, count, is_open):
    """A preset changes some 60 settings."""
    run = read_folder(write_run(tmp_path / "run", **{f"knob_{n}": n for n in range(count)}))
    page = render_page([run], {"hint": {"seed": 1}})
    assert (re.search(r"<details open><summary>Changed", page) is not None) == is_open
    assert "<summary>Changed (" in page
