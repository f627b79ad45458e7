"""Where a text may end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.hint.hints.fitting import SafeEnds, cut_at_sentence, cut_into, sentence_ends

TEXTS = st.text(alphabet="ab $\\{}[]().!?\n1长。，（", max_size=60)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("a $x + y$ b", "$x + y$"),
        ("a $$x$$ b", "$$x$$"),
        ("a \\(x\\) b", "\\(x\\)"),
        ("a \\[x\\] b", "\\[x\\]"),
        ("a \\frac{1}{2} b", "\\frac{1}{2}"),
        ("a \\theta b", "\\theta"),
        ("a \\begin{aligned}x\\begin{cases}y\\end{cases}\\end{aligned} b", "\\begin"),
        ("a $x \\$ y$ b", "$x \\$ y$"),
        ("a \\{1, 2\\} b", "\\{"),
    ],
)
def test_no_place_inside_a_piece_is_an_end(text, inside):
    safe = SafeEnds(text)
    start = text.index(inside)
    stop = start + len(inside) if inside != "\\begin" else text.index(" b")
    for place in range(start + 1, stop):
        assert safe.before(place) == start
        assert safe.after(place) == stop
    for place in (0, 1, start, stop, len(text)):
        assert safe.before(place) == safe.after(place) == place


def test_what_is_never_closed_reaches_to_the_end():
    for text in ("a \\[x + y and on", "a \\begin{cases} x", "a \\text{never"):
        assert SafeEnds(text).before(len(text) - 1) == 2


def test_a_single_dollar_opens_nothing():
    assert SafeEnds("It is $5 in all").before(8) == 8


@given(TEXTS, st.integers(0, 60))
def test_before_and_after_are_ends_themselves(text, place):
    safe, place = SafeEnds(text), min(place, len(text))
    before, after = safe.before(place), safe.after(place)
    assert 0 <= before <= place <= after <= len(text)
    assert safe.before(before) == before
    assert safe.after(after) == after


def test_sentences_end_outside_of_formulas_only():
    text = "See $a. b$ here. Or $c.$ Then\nstop"
    assert [text[:end] for end in sentence_ends(text)] == [
        "See $a. b$ here.",
        "See $a. b$ here. Or $c.$",
        "See $a. b$ here. Or $c.$ Then\n",
        text,
    ]


def test_the_longest_run_of_sentences_that_fits_is_kept():
    hint = "One. Two $a. b$ two. Three."
    assert cut_at_sentence(hint, lambda text: len(text) <= 100) == hint
    assert cut_at_sentence(hint, lambda text: len(text) <= 21) == "One. Two $a. b$ two."
    assert cut_at_sentence(hint, lambda text: len(text) <= 13) == "One."
    assert cut_at_sentence(hint, lambda text: len(text) <= 3) == ""


@given(TEXTS.filter(str.strip), st.integers(1, 6))
def test_pieces_grow_and_the_last_is_the_whole_text(text, pieces):
    cut = cut_into(text, pieces)
    assert len(cut) == pieces
    assert cut[-1] == text
    for shorter, longer in zip(cut, cut[1:], strict=False):
        assert longer.startswith(shorter)
        assert SafeEnds(text).before(len(shorter)) == len(shorter)


SENTENCES = {
    "Chinese": ["先算面积。", "再算周长！", "最后呢？"],
    "closing marks": ["他说：“先加。”", "（再减。）", "「最後に割る。」", "“对吗？！”"],
    "formulas": ["令$x=1$。", "$y$是多少？", "\\(a。b\\)不断。"],
    "Japanese": ["まず足します。", "次に引きます｡", "３．１４です．"],
    "Hindi and Urdu": ["पहले जोड़ें।", " फिर घटाएँ॥", " یہ جمع کریں۔", " کیا ہے؟"],
    "quotation marks": ["He says “Add.”", " Then «Take.»", " Then stop."],
    "English": ["Add 3.14 first.", " Is it 5?!", " Stop."],
}


@pytest.mark.parametrize("sentences", SENTENCES.values(), ids=SENTENCES)
def test_sentences_end_as_their_script_ends_them(sentences):
    text = "".join(sentences)
    ends = [sum(map(len, sentences[:number])) for number in range(1, len(sentences) + 1)]
    assert sentence_ends(text) == ends
    for end in ends:  # a hint that is too long by one character is cut, not lost
        shorter = [each for each in ends if each < end]
        expected = text[: shorter[-1]] if shorter else ""
        assert cut_at_sentence(text[:end], lambda cut, end=end: len(cut) < end) == expected


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        # 8 letters: 2, 4, 6 of them; then 6 ends (令, $x + 1$, ...): ceil(6 k / 4) = 2, 3, 5.
        ("先算面积，再算周长。", ("先算", "先算面积，", "先算面积，再算", "先算面积，再算周长。")),
        ("令$x + 1$为边长a", ("令$x + 1$", "令$x + 1$为", "令$x + 1$为边长", "令$x + 1$为边长a")),
        ("足し算 を使う", ("足し", "足し算", "足し算 を使", "足し算 を使う")),
        ("ที่นี่มี", ("ที่", "ที่นี่", "ที่นี่มี", "ที่นี่มี")),
        ("다섯 더하기 둘 은", ("다섯", "다섯 더하기", "다섯 더하기 둘", "다섯 더하기 둘 은")),
    ],
)
def test_a_text_without_spaces_is_cut_between_characters(text, cut):
    assert cut_into(text, 4) == cut
