"""Which words of a problem are units and nouns, and which of them an answer may carry."""

from __future__ import annotations

import itertools

import pytest

from recipe.verify.maths.grade import grade_maths
from recipe.verify.maths.mentions import mentioned_units
from recipe.verify.maths.units import name_of

# Ordinary words that are a prefix and a unit to a reader of abbreviations.
ORDINARY = (
    "has fly us my exam exact act camp miss mugs petals candles gifts ramp mas pan tan can cans "
    "at as am pm cat hat pat mat dad mad ham mail fail pin pins dam dams gas pea peas aft craft "
    "pact fact tact mach nab mob cab tab dab zoom gain main min max gym yam yet get pet met net "
    "mint hint ma pa had mud cud nil mil gal's peg meg keg tin fin din stay "
    "Ann Al Jim Kim Tim Pam Sam Cam Mac Max May Matt Em Ed Eva Gil Nan Dan Meg Peg Hal Cal"
).split()
SYMBOLS = (
    "m g s h l L N J W V A K C F a t b B d ft in mi yd oz lb ha ct pt qt cd ly eV Hz Pa".split()
)
LETTERS = "y z a f p n u m c d h k M G T P E Z Y".split()
KNOWN = (  # listed, or another word
    "km cm mm dm nm um kg mg ug ml mL cl cL dl dL kl kL ms ns us kN kJ MJ MeV kW MW GW mW kV mV mA "
    "kHz MHz GHz kPa MPa keV kB MB GB TB mi ft pt Pa ha min Min yd Yd"
).split()


@pytest.mark.parametrize("word", ORDINARY)
def test_an_ordinary_word_is_no_unit(word):
    told = mentioned_units(f"Ann and {word} walk 5 miles to the {word}. It took {word} all of it.")
    assert told == {"mile"}
    assert name_of(word) is None or word in ("us", "min", "pt")  # symbols, where a number is before


def test_a_prefix_and_a_symbol_are_a_unit_only_where_they_are_listed():
    joined = ["".join(pair) for pair in itertools.product(LETTERS, SYMBOLS)]
    odd = [word for word in joined if name_of(word) is not None and word not in KNOWN]
    assert odd == [] and len(joined) > 600


def test_a_prefix_and_a_unit_in_whole_words_are_a_unit():
    assert name_of("kilometers") == name_of("kilometre") == name_of("km") == "kilometer"
    assert name_of("microseconds") == "microsecond" and name_of("Megawatts") == "megawatt"
    assert name_of("kilofeet") is None and name_of("millidays") is None
    assert name_of("mW") == "milliwatt" and name_of("MW") == "megawatt" and name_of("Mg") is None


MENTIONS = {
    "Matt's dog walks 5 minutes.": {"minute"},
    "The second side is a bit longer; the back yard is 3 feet wide.": {"foot"},
    "It turns 3 times per second.": {"second"},
    "A 10-second clip, 4 seconds apart.": {"second"},
    "Let $m$ and $n$ be integers with $3m+2n=5m$.": set(),
    "In triangle $ABC$ with $C = 90^\\circ$, $BC = 3$.": {"degree"},
    "A beam is 3 m long and weighs 4 g.": {"meter", "gram"},
    "A beam is $3\\text{ m}$ long, $v = 4\\,\\mathrm{m/s}$.": {"meter", "second"},
    "It is 50°F outside and $10^\\circ$C inside.": {
        "degree",
        "degree_Fahrenheit",
        "degree_Celsius",
    },
    "Let $F_1$ and $F_2$ be the foci, $\\min(a, b) = 3$.": set(),
    "Let $f \\circ F$ and $F \\circ C$ be maps of $[0, 5]$.": set(),
    "A pen costs $3 and a book $12.50.": {"dollar"},
    "A pen costs \\$3.": {"dollar"},
    "Find $3 + 4$ and $5x$ if $x = 2$.": set(),
    "A 60 mph wind.": {"mile_per_hour", "mile", "hour"},
    "Give the mass in kg (or in mg).": {"kilogram", "milligram"},
}


@pytest.mark.parametrize("problem", MENTIONS)
def test_what_a_text_mentions(problem):
    assert mentioned_units(problem) == MENTIONS[problem]


def accepts(answer, gold, problem):
    return grade_maths(rf"\boxed{{{answer}}}", gold, problem=problem).reason == "correct"


STORIES = (  # each has one unit and words that look like others
    "{name}'s dog needs 5 {unit} for a lap. What does it need for ten laps?",
    "It takes us 5 {unit}. My exam has ten parts of that kind. What do they take together?",
    "On the second lap {name} lost 3 {unit}, on the third 47. What is the sum?",
    "{name} has 20 and 30 {unit}. What is {name}’s total?",
    "The candles, mugs and petals act as a ramp: 20 and 30 {unit}. What is the total?",
)
UNITS = (
    "minutes hours days weeks miles feet inches kilometers kilograms pounds gallons acres liters"
).split()


@pytest.mark.parametrize("story", STORIES)
def test_the_one_unit_of_a_story_may_stand_in_the_answer_and_no_other(story):
    for name, unit in itertools.product(("Ann", "James", "Al"), UNITS):
        problem = story.format(name=name, unit=unit)
        assert accepts(rf"50\text{{ {unit}}}", "50", problem), problem
        assert not accepts(rf"51\text{{ {unit}}}", "50", problem)
        for other in (*UNITS, "seconds", "s", "ha", "m", "g", "K", "C", "N", "h", "microseconds"):
            is_other = name_of(other) != name_of(unit)
            assert not (is_other and accepts(rf"50\text{{ {other}}}", "50", problem)), other
        for tail in ("squared", "or more", "per day", "left", "old", "million", "ago"):
            assert not accepts(rf"50\text{{ {unit} {tail}}}", "50", problem), tail


BARE = (
    "Let $m$, $n$ and $s$ be positive integers with $3m+2n=s$. Find the largest $s$.",
    "Points $A$, $C$, $F$, $K$, $L$, $N$ lie on a circle. Find the sum of all distances.",
    "Let $h(g) = 5g + 3$. Find $h(m)$ for the $g$ and $m$ of the table.",
    "Ann's son has my second exam. Find the smallest $n$ that is exact.",
)


@pytest.mark.parametrize("problem", BARE)
def test_a_problem_without_units_allows_none(problem):
    for unit in (*SYMBOLS, *UNITS, "seconds", "microseconds", "dollars", "cents", "mph", "km"):
        for text in (rf"27\text{{ {unit}}}", rf"27\ \mathrm{{{unit}}}", rf"27\mbox{{ {unit}}}"):
            assert not accepts(text, "27", problem), text
    assert not accepts(r"16^\circ\text{F}", "16", problem) and not accepts(r"\$27", "27", problem)
    assert accepts(r"27\text{ square units}", "27", problem)


# What is asked for, and what may stand behind the number.
ASKED = {
    "How many cans did Ann buy?": ("cans",),
    "Then how many quarters does Ann have?": ("quarters",),
    "How many logs does the carpenter need?": ("logs",),
    "How many more apples does Ann have than Ben?": ("apples", "more apples", "more"),
    "How many times did Ann jump?": ("times",),
    "How many pairs of shoes does Ann have?": ("pairs", "pairs of shoes"),
    "How many chocolate bars are in a box?": ("bars", "chocolate bars"),
    "How many blue candles are on the cake?": ("candles", "blue candles"),
    "How many apples does Ann have left?": ("apples", "apples left", "left"),
    "How many pages are left to read?": ("pages", "pages left"),
    "How many cookies are remaining in the jar?": ("cookies", "cookies remaining"),
    "Ben is 3 years older. How old is Ann?": ("years", "years old"),
    "Ann is 3 years old. What is the age of Ben?": ("years", "years old"),
    "How many years older is Ann than Ben?": ("years", "years older"),
    "How many positive divisors does 12 have?": ("divisors", "positive divisors"),
    "How many more minutes does Ann need?": ("minutes", "more minutes"),
}
NEVER = (
    "or more,or less,or so,more or less,not,less than,percent,dozen,hundred,million,to,minus,"
    "of,and,half,thirds,squared,per day,elephants,each,negative,odd,quarters more,times more,"
    "left over right,months,months old,days old,weeks,fewer,less,extra,cents,ha,m,can,root,"
    "than"
).split(",")


@pytest.mark.parametrize("question", ASKED)
def test_the_noun_that_is_asked_for_may_stand_in_the_answer_and_no_other_word(question):
    allowed = ASKED[question]
    problem = f"It is early. {question}"
    for noun in allowed:
        assert accepts(rf"15\text{{ {noun}}}", "15", problem), noun
        assert not accepts(rf"16\text{{ {noun}}}", "15", problem)
        assert not accepts(rf"-15\text{{ {noun}}}", "15", problem)
    for word in NEVER:
        for text in (word, f"{allowed[0]} {word}", f"{word} {allowed[0]}"):
            assert not accepts(rf"15\text{{ {text}}}", "15", problem), text


# Words that make the number before them another; each has to be asked for as it is written.
CHANGING = (
    "square squares cube cubes cubic hundreds thousands halves quarter quarters root roots power "
    "powers double doubled tripled triple quadruple quintuples tenfold twofold hundredfold squared "
    "halved divided increased rounded repeated daily weekly infinitely permille promille myriads "
    "quadrillions sextillion googols radical ternary negative positive odd multiples exponent "
    "conjugate complement opposite undefined invalid pennies nickels dime pence fortnights log "
    "mille grosses sqrt triplets twins grand"
).split()
STORIES_OF = (
    "Ann knows {word}. Find $x$.",
    "Ann has {word} tiles. What does she have?",
    "Ann has {word}. How many tiles does she have?",
    "How many {singular} tiles does Ann have?",
    "How many {singular} feet is the area?",
)


@pytest.mark.parametrize("word", CHANGING)
def test_a_word_that_changes_a_number_is_no_noun_unless_it_is_what_is_asked(word):
    singular = word.removesuffix("s")
    for story in STORIES_OF:
        problem = story.format(word=word, singular=singular)
        for text in (word, singular, f"tiles {word}"):
            for gold in ("5", "-12", r"\frac{3}{4}"):
                assert not accepts(rf"{gold}\text{{ {text}}}", gold, problem), (problem, text)


def test_a_plural_that_is_asked_for_may_stand_without_its_adjectives():
    for noun in ("squares", "cubes", "quarters", "roots", "powers", "multiples", "pennies", "logs"):
        for problem in (f"How many perfect {noun} are there?", f"How many {noun} can Ann see?"):
            assert accepts(rf"5\text{{ {noun}}}", "5", problem), problem
            assert not accepts(rf"5\text{{ {noun.removesuffix('s')}}}", "5", problem), problem
            assert not accepts(rf"6\text{{ {noun}}}", "5", problem)
    assert accepts(r"5\text{ ordered triples}", "5", "How many ordered triples are there?")
    assert accepts(r"5\text{ triples}", "5", "How many ordered triples are there?")


PRICES = {
    "Candles cost 50 cents each and plants $5. How much do 4 candles and 2 plants cost?": True,
    "A bear costs $4, every further one 50 cents less. How much does Ann pay?": True,
    "A bear costs $4 and a pen 50 cents. How many cents do 2 pens cost?": False,
    "A bear costs $4 and a pen 50 cents. What is the price of both in cents?": False,
    "A pen costs 50 cents. Ann has 7 dollars. Find the price of ten pens.": False,
    "A pen costs 50 cents. Find the price of ten pens.": False,
    "Ann has 3 quarters and 2 dimes. How much money does she have?": False,
    "Ann pays 250 pesos a night. How much money does she spend?": False,
    "A pen costs $2. How many pens does Ann buy for $10?": False,
    "A pen costs $2. It weighs 5 grams. How heavy are ten pens?": False,
    "How much does Ann earn?": True,
}


@pytest.mark.parametrize("problem", PRICES)
def test_a_dollar_sign_is_free_where_the_problem_counts_in_dollars(problem):
    assert accepts(r"\$12", "12", problem) is PRICES[problem]
    assert not accepts(r"\$12.50", "12", problem) and not accepts(r"\$1200", "12", problem)
    assert not accepts(r"€12", "12", problem) and not accepts(r"12\text{ yen}", "12", problem)


def test_a_unit_behind_another_in_and_an_amount_of_money_are_asked_for():
    told = "She walks 6 hours a day, then 3 quarter hours and 15 minutes."
    for question in (
        "Calculate the total time in the two days in minutes.",
        "How long does she walk in a day in minutes?",
    ):
        assert accepts(r"720 \text{ minutes}", "720", f"{told} {question}")
        assert not accepts(r"720 \text{ hours}", "720", f"{told} {question}")
        assert not accepts(r"720 \text{ days}", "720", f"{told} {question}")
    peppers = "Each pepper costs 15$. What's the total amount of money he will spend?"
    assert accepts(r"\$880", "880", peppers)
    assert not accepts(r"880 \text{ cents}", "880", peppers)
    assert not accepts(r"\$880", "880", "He has 3 dimes. What is the amount of money in cents?")
    assert not accepts(r"\$880", "880", "What amount of money in euros is it?")


def test_a_unit_may_be_asked_for_in_symbols():
    spelled = {
        r"\text{ cm}^2": ("cm^2", "cm²", "cm2", "cm^{2}", r"$\text{cm}^2$", r"$\mathrm{cm}^{2}$"),
        r"\text{ m}^3": ("m^3", "m³", "m3", r"$\text{m}^3$", r"$\mathrm{m}^{3}$"),
        r"\text{ m/s}": ("m/s", r"$\text{m/s}$", r"$\mathrm{m/s}$"),
        r"\text{ m/s}^2": ("m/s^2", "m/s²", r"$\text{m/s}^2$"),
        r"\text{ N}": ("N", r"$\text{N}$"),
        r"\text{ ft}^3": ("ft^3", "ft³"),
    }
    askings = ("What is it in @?", "Find it, in @.", "How many @ are there?", "Give it in @.")
    for unit, spellings in spelled.items():
        for asking in askings:
            for each in spellings:
                if len(each) == 1 and "many" in asking:
                    continue  # how many N are there?
                asked = asking.replace("@", each)
                assert accepts(f"12{unit}", "12", asked), (unit, asked)
                for other in spelled:
                    assert other == unit or not accepts(f"12{other}", "12", asked), (other, asked)
                assert not accepts(r"12\text{ cm}", "12", asked), asked
