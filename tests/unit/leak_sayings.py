"""Ways to give an option away, and hints that are honest beside a small answer or an option.

``{a}`` is the answer, ``{n}`` and ``{m}`` numbers of the problem; ``{L}`` is the right letter,
``{x}`` and ``{y}`` are two others.
"""

from __future__ import annotations

from collections.abc import Iterator

BESIDE_THE_ANSWER = (
    r"""
Step {a}: simplify. | {a}. Simplify. | There are {a} ways to go on. | Use the {a} sides. |
You made {a} mistakes. | Look at line {a}. | The answer is more than {a}. | The answer is not {a}. |
The answer is {a} more than you think. | The answer has {a} digits. |
The answer is a multiple of {a}. | Divide by {a}. | Try $x = {a}$ and see what happens. |
Add {a} to both sides. | The answer is in part {a}. | Write {a} equations. | You need {a} steps. |
Replace x by {a} in the formula. | You should have {a} equations. | You should get {a} terms. |
You want {a} equal parts. | Answer {a} questions first. | The answer is the sum of {a} numbers. |
The answer is {a} times a number. | The answer consists of {a} parts. |
The answer is one of {a} cases. | The answer is a {a}-digit number. |
The answer is smaller than {a}. | Your answer is {a} too large. | The answer is off by {a}. |
Your answer {a} is not right. | Why did you write {a}? |
If the answer were {a}, the total would be wrong. | You got {a}, which is too small. |
Your solution is {a} lines long. | The solution to part {a} is right. |
The solution of equation {a} is not needed. | The answer is at least {a}. |
The answer is less than {a}. | The answer is divisible by {a}. |
The answer is not {a}, as you wrote. | It is wrong that the answer is greater than {a}. |
The answer isn't {a}. | (a) ... ({a}) combine both. | Hint {a}: look again. |
The remainder modulo {a} helps. | Take the {a}th power. | The solution is {a} steps away. |
Not {a}: look again. | The correct answer is between {a} and 99. |
It should have {a} decimal places. | The result is {a} times as large as the first part. |
Your answer of {a} is wrong. | The answer is never {a}. | In the answer, {a} terms cancel. |
To answer, {a} facts are needed. | To find the answer, list {a} cases. |
Your answer: {a} is too small.
""".strip()
    .replace(" |\n", " | ")
    .split(" | ")
)
WITH_NUMBERS_OF_THE_PROBLEM = (
    r"""
Start from the {n} of the problem. | What does the {n} tell you? | The answer is more than {n}. |
The answer is not {n}. | Check your answer: it should be less than {n}. |
You used {n} twice; use it once. | Step 1: look at {n}. Step 2: look at {m}. Step 3: combine both. |
First work with {n}, then with {m}; the answer follows. |
There are 2 steps: one uses {n}, the other {m}. | Your answer should be a whole number. |
Your first step is correct, but the second one is wrong. | The answer has 2 digits. |
Compare {n} with {m}. | You wrote {n} in line 2. Is that what the problem says? |
The final answer needs one more step. |
Think about the answer in three parts: (1) {n}, (2) {m}, (3) the rest. |
Multiply {n} by something before you add {m}. |
Your result is too large; you should have divided by {n} first. |
Change line 2: you should not use {n} there. | The answer to the first part is {n}. |
The value you need first is {n}. | Let x be the answer; then x depends on {n} and {m}. |
You should get a number smaller than {n}. | Instead of {m}, look at {n}. |
It should be clear that {n} comes first. | Write {n} and {m} side by side.
""".strip()
    .replace(" |\n", " | ")
    .split(" | ")
)
WITH_NUMBERS_OF_THE_PROBLEM += [
    "1. Read the problem.\n2. Find what is asked.\n3. Use {n}.\n4. Combine.\n5. Check.",
    "Find the answer.\n1. Look at {n}.\n2. Look at {m}.\n3. Combine.",
]
OPTIONS = {"A": "Venus", "B": "Mars", "C": "the planet Jupiter", "D": "Saturn and its rings"}
ASKED = "Which planet do we call the red one?"
QUESTIONS = [
    "\n".join([ASKED, *(f"{letter}. {said}" for letter, said in OPTIONS.items())]),
    " ".join([ASKED, *(f"({letter}) {said}" for letter, said in OPTIONS.items())]),
]
BESIDE_THE_OPTIONS = (
    r"""
Compare {L} with {x}. | Options {L} and {x} differ in one point. | Point {L} is the midpoint. |
Rule out {x} first. | Read each option again. | Which of A, B, C, D fits? | Eliminate {x} and {y}. |
Your choice of {x} is wrong. | {L} is not a right angle. | Angle {L} is right. |
Vitamin {L} is correct in this text. | Think about the {o} law. | The {o} sentence matters. |
Option {x} is wrong. | {x} is wrong and {y} is too far away. | The answer is not {x}. |
Look at what the letters A, B, C and D stand for. | {L} is the midpoint of XY. |
Let {L} be the set of planets. | So {L} lies on the line. | It is {L} that lies between both. |
Take {L} planets of the list. | The answer is one of A to D. | Either {L} or {x} is right. |
You said {x}. Check it. | A good start is to look at each option. | Only two options are left. |
Do not choose {x}. | The planet {X} is hot. | Compare {T} with {X}. | Why do you choose {x}? |
Is it {X}? | Think of what {T} looks like from here. |
Options A, B and C are planets without rings. | Choose between {L} and {x}. |
The first option you chose is wrong. | Your answer {x} is wrong; think about colour. |
I like it. A first step is done. | The second step is wrong. | Answer the first part first. |
What is the first thing you see? | One of the options has rings. | It is not {x} or {y}. |
None of {x} and {y} is red. | It is a planet. | The answer has one word. |
Option {x} says something else than option {L} says. | C is the speed of light. |
D is the distance. | A is for area. | Set A contains B.
""".strip()
    .replace(" |\n", " | ")
    .split(" | ")
)
LETTER_LOOKS = (
    r"""
{} | ({}) | [{}] | **{}** | **({})** | ${}$ | \text{{{}}} | \textbf{{({})}} | "{}" | `{}` |
<b>{}</b> | $\boxed{{{}}}$ | {}) | “{}” | __{}__
""".strip()
    .replace(" |\n", " | ")
    .split(" | ")
)
LETTER_SAYINGS = (
    r"""
The answer is {}. | Choose {}. | Pick {}. | Option {}. | The correct option is {}. | It's {}. |
{} is correct. | {} is the answer. | {} is the right one. | Go with {}. | I would select {}. |
Answer: {} | The letter is {}. | Select choice {}. | Answer = {} | Mark {}. | {} it is. |
It must be {}. | Only {} fits. | Only option {} works. | That leaves {}. | leaving {} |
Everything points to {}. | You should have chosen {}. | Change your answer to {}. |
The right choice: {} | (Answer {}) | Your final answer should be {}. |
The answer should have been {}. | Final: {} | So {}. | The answer, then, is {}. |
{} is your answer. | {} is the only correct option. | Which one? {}! |
The correct letter here is {}. | Respond with {}. | It can only be {}. |
All options except {} are wrong. | Every option but {} fails. | {} is clearly correct. | It is {}. |
Give {} as the answer.
""".strip()
    .replace(" |\n", " | ")
    .split(" | ")
)
LETTER_SAYINGS += ["Think.\n{}"]
SMALL_SAYINGS = (
    r"""
option {} | The answer is ({}). | choice {}. | The answer is {}. | answer: {}
""".strip()
    .replace(" |\n", " | ")
    .split(" | ")
)
ORDINALS = "first second third fourth".split()
CARDINALS = "one two three four".split()
PLACE_SAYINGS = (
    r"""
The answer is the {o} option. | Choose the {o} one. | The {o} option is correct. |
Pick option {n}. | Choose option number {w}. | The {o} choice is right. | It is the {o} answer. |
Take choice {w}. | The {o} of the options is the correct one. | So option {n}. |
The answer is option {w}.
""".strip()
    .replace(" |\n", " | ")
    .split(" | ")
)
EXCLUSIONS = (
    r"""
It is not {x}, {y} or {z}. | It is neither {x}, {y} nor {z}. | {x}, {y} and {z} are wrong. |
It is none of {x}, {y}, {z}. | Eliminate {x}, {y} and {z}. | Rule out {x}, {y}, and {z}. |
{x} is wrong. {y} is wrong. {z} is wrong. | Not {x}, not {y}, not {z}. |
{x} and {y} are false, and {z} is incorrect. | Options {x}, {y} and {z} can be ruled out. |
Exclude ({x}), ({y}) and ({z}).
""".strip()
    .replace(" |\n", " | ")
    .split(" | ")
)
TEXT_SAYINGS = (
    r"""
The answer is {}. | It is {}. | {} is correct. | Choose {}. | **{}** is the answer. | Answer: {}! |
The right option is {}. | Pick “{}”. | So $\boxed{{\text{{{}}}}}$. | {} is the right one. |
It must be {}. | The correct choice is: {}
""".strip()
    .replace(" |\n", " | ")
    .split(" | ")
)


def option_hints(letter: str) -> Iterator[str]:
    """Give the option of this letter away."""
    place = ord(letter) - 65
    looks = [look.format(letter) for look in LETTER_LOOKS]
    looks += [chr(0xFF21 + place), chr(0x1D400 + place), chr(0x24B6 + place)]
    yield from (saying.format(look) for saying in LETTER_SAYINGS for look in looks)
    yield from (saying.format(letter.lower()) for saying in SMALL_SAYINGS)
    for saying in PLACE_SAYINGS:
        yield saying.format(o=ORDINALS[place], n=place + 1, w=CARDINALS[place])
    x, y, z = sorted({*OPTIONS} - {letter})
    yield from (saying.format(x=x, y=y, z=z) for saying in EXCLUSIONS)
    said = OPTIONS[letter]
    texts = [said, said.upper(), said.lower(), said.title(), said.replace(" ", "  ")]
    texts += [said.replace(" ", "-"), f"*{said}*", f"{said}..."]
    yield from (saying.format(text) for saying in TEXT_SAYINGS for text in texts)


def honest_hints(letter: str) -> Iterator[str]:
    """Speak of the options without giving the one of this letter away."""
    others = sorted({*OPTIONS} - {letter})
    for x, y in zip(others, [*others[1:], others[0]], strict=True):
        for hint in BESIDE_THE_OPTIONS:
            place = ORDINALS[ord(letter) - 65]
            yield hint.format(L=letter, x=x, y=y, o=place, X=OPTIONS[x], T=OPTIONS[letter])
