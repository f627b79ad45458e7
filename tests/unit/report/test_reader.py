"""What a run wrote is read in one place."""

from page_runs import metrics, write_run

from recipe.study.runs import read_run


def test_a_run_has_its_numbers_settings_machine_and_end(tmp_path):
    folder = write_run(tmp_path / "run", rows=[metrics(1), metrics(2, 0.5)], method="sage")
    (folder / "machine.json").write_text('{"version": {"torch": "2"}}')
    (folder / "logs").mkdir()
    (folder / "logs/fatal.json").write_text('{"error": "the disk is full \\ud83d\\ude00"}')
    run = read_run(folder)
    assert (run.name, run.config["trainer"]["method"], run.last_step) == ("run", "sage", 2)
    assert (run.tokens(), run.tokens(1), run.minutes(), run.levels) == (2000.0, 1000.0, 0.1, {0, 1})
    assert run.curve("tiny/hard") == {2: 0.5}
    assert run.machine == {"version": {"torch": "2"}} and run.failure == "the disk is full 😀"
    # What a kill left is no row; numbers that are none are left out.
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"step": 3, "hint/prompts": NaN, "a": 1e999}\n{"step": 4')
    assert read_run(folder).rows[2:] == [{"step": 3}]
