"""One HTML page of runs: what it shows, and that no text of a model can act in it."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest
from page_runs import HOSTILE, metrics, record, sample, write_run

from recipe.study.campaign_results import runs_of
from recipe.study.page import render_page
from recipe.study.runs import read_run

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def page_of(*folders, **given):
    return render_page([read_run(each) for each in folders], **given)


def charts_of(page):
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]
    return {each["title"]: each for each in json.loads(data)}


def words(page):
    """The page's text outside of scripts, in one line."""
    page = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_a_run_has_the_numbers_that_matter_its_levels_and_its_end(tmp_path):
    rows = [metrics(0, 0.25), *(metrics(step, 0.5 if step == 4 else None) for step in range(1, 5))]
    folder = write_run(tmp_path / "run", rows=rows)
    (folder / "logs").mkdir()
    (folder / "logs/fatal.json").write_text('{"error": "the disk is full"}')
    page = page_of(folder)
    # 5 steps of 1,000 tokens and 3 s.
    assert "run 1 4 25.0 → 50.0 75.0 → 75.0 25.0 → 25.0 5 k 0.2" in words(page)
    assert "run ended: the disk is full" in words(page)
    levels = charts_of(page)["Prompts by the hint level that trains: run"]["data"]
    shares = {each["name"]: each["y"] for each in levels}
    assert shares == {"level 0": [0.75] * 5, "level 1": [0.25] * 5}


def test_tokens_that_a_step_does_not_tell_are_unknown_and_not_fewer(tmp_path):
    rows = [metrics(1, 0.5), {k: v for k, v in metrics(2).items() if k != "hint/tokens"}]
    page = page_of(write_run(tmp_path / "run", rows=rows))
    assert "75.0 → 75.0 25.0 → 25.0 - 0.1" in words(page)  # 6 s are 0.1 minutes


def test_seeds_of_a_campaign_are_one_variant_with_a_mean_and_a_band(tmp_path):
    for seed, accuracy in ((1, 0.4), (2, 0.6)):
        folder = write_run(tmp_path / f"sage/seed-{seed}", rows=[metrics(1, accuracy), metrics(2)])
        (folder / "campaign.json").write_text("{}")
    other = write_run(tmp_path / "grpo", rows=[metrics(1, 0.1), metrics(2)], method="grpo")
    page = page_of(tmp_path / "sage/seed-1", tmp_path / "sage/seed-2", other)
    assert "3 runs of 2 variants" in words(page) and "sage 2 2 50.0 " in words(page)
    assert "50.0 →" not in words(page)  # of one validation there is no later one
    chart = charts_of(page)["Accuracy, tiny/hard"]
    assert [each["name"] for each in chart["data"]] == ["sage", "sage", "grpo"]
    band, line, _ = chart["data"]
    assert (line["x"], line["y"]) == ([1], [0.5])
    # Student's t(1) = 12.7 times 0.1 reaches beyond what a share can be.
    assert band["y"] == [1.0, 0.0]


def test_prompts_show_what_was_tried_and_the_texts_that_were_kept(tmp_path):
    records = [record(1, "a", "00", "01", leaked_levels=[1]), record(2, "b", "11")]
    samples = [sample(1, "a", (1, "correct", "so it is 5"))]
    run = read_run(write_run(tmp_path / "run", records, samples, [metrics(1)]))
    text = words(render_page([run]))
    assert "step 1 · a informative a hint holds the answer" in text
    assert "level 0 ✗✗, 10 tokens level 1 ✗✓, 10 tokens, trains" in text
    assert "1 × correct level 1, reward 1.0" in text and "so it is 5" in text
    assert text.index("step 2 · b not informative") < text.index("step 1 · a")
    assert "The newest" not in words(render_page([run], max_prompts=0))


def test_settings_that_differ_between_variants_are_shown(tmp_path):
    folders = [
        write_run(tmp_path / name, rows=[metrics(1)], max_tokens=size, style="paper")
        for name, size in (("x", 512), ("y", 256))
    ]
    text = words(page_of(*folders)).split("differ between the variants")[1]
    assert "hint.max_tokens 512 256" in text
    assert "run_dir" not in text and "max_level" not in text


def test_text_of_a_run_cannot_become_markup_or_hide(tmp_path):
    name = f"{HOSTILE}\u202e"
    folder = write_run(
        tmp_path / "run",
        [record(1, name, "01", reasons={name: 1})],
        [sample(1, name, (0, "correct", f"{name}\0\ud800"))],
        [metrics(1, 0.5) | {f"val-core/{name}/acc/mean@2": 0.5}],
        method=name,
        style=name,
    )
    page = page_of(folder)
    assert page.count("<script") == 3 and "<img" not in page and "\u202e" not in page
    assert "⟨U+202E⟩⟨U+0000⟩⟨U+D800⟩" in page
    page.encode()
    assert "default-src 'none'" in page and "http://www.w3.org" not in page.split('id="data"')[0]


def test_a_run_that_has_only_begun_and_kept_campaigns_have_pages(tmp_path):
    assert "No texts" not in page_of(write_run(tmp_path / "run"))
    for path in Path("docs/evidence").iterdir():
        runs = [*runs_of(path)]
        assert runs[0].config["hint.seed"] == "1"
        assert f"{len(runs)} runs of" in words(render_page(runs))


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="needs a Chromium on the PATH")
def test_a_browser_draws_the_charts_and_runs_nothing_of_a_model(tmp_path):
    samples = [sample(1, "a", (0, "correct", HOSTILE))]
    folder = write_run(tmp_path / "run", [record(1, "a", "01")], samples, [metrics(1, 0.5)])
    (tmp_path / "page.html").write_text(page_of(folder))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=9000"]
    command += [f"--user-data-dir={tmp_path}/profile", "--dump-dom", f"file://{tmp_path}/page.html"]
    end = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert 'data-ready="yes"' in end.stdout and "main-svg" in end.stdout
    assert "<title>run</title>" in end.stdout
