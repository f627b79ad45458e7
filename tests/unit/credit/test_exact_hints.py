"""What the methods of one turn ascend, by enumeration of verl's own advantages and loss.

Notation: G responses of a prompt, p the chance that one is right, differentiable; ``frozen`` is
p without its gradient. A search that goes on while nobody is right reaches level l with the chance
product of (1 - p_j)^G over the levels j before it.
"""

import math
from itertools import product

import pytest
from enumerated import THREE, TWO, Policy, Words, bare, every_outcome, hinted
from updates import EPSILON, expected_update, is_ascended, largest, largest_difference

from recipe.hint.hints.self_generated import SelfGenerated
from recipe.hint.methods.fixed import Fixed, FixedSettings
from recipe.hint.methods.ghpo import Ghpo, GhpoSettings
from recipe.hint.methods.grpo import Grpo
from recipe.hint.methods.sage import Sage, SearchSettings
from recipe.hint.methods.sage_light import SageLight
from recipe.hint.methods.scaf import Scaf, ScafSettings
from recipe.hint.prompt import Texts
from recipe.hint.schema import ProblemState

G = 3
BY_STD = pytest.mark.parametrize("by_std", [True, False])
FIRST_HINT, SECOND_HINT = hinted("hint 1"), hinted("hint 2")
# With a form of its own: right or wrong, and with or without the tags that GHPO rewards.
FORM = "<think>1</think><answer>2</answer>"
FORMED = Words({"aa": 0.0, "ab": 0.0, "ba": 1.0, "bb": 1.0}, {"ab": FORM, "bb": FORM})


def solved(policy, conversation):
    return policy.mean(conversation, policy.words.scores.__getitem__)


def weight(p, by_std=True, group_size=G, trains=lambda k: 1.0):
    """Return by how much a group moves its own p: its update is weight(p) times the gradient of p.

    Of k right responses each has the advantage (1 - k/G) / s and pulls with grad p / p; of the
    others each has -(k/G) / s and pulls with -grad p / (1 - p). Their deviation is
    s = sqrt(k (G-k) / (G (G-1))). Together: sum_k Binomial(k) k (G-k) / (G^2 s p (1-p)), which
    without s is (G-1) / G for every p. ``trains(k)`` is the chance that such a group trains.
    """
    n, total = group_size, 0.0
    for k in range(1, n):
        s = math.sqrt(k * (n - k) / (n * (n - 1))) + EPSILON if by_std else 1.0
        chance = math.comb(n, k) * p**k * (1 - p) ** (n - k)
        total += trains(k) * chance * k * (n - k) / (n**2 * s * p * (1 - p))
    return total


def moved(policy, conversation, by_std=True, **options):
    """Return weight(p) x p with the weight frozen: its gradient is a group's expected update."""
    p = solved(policy, conversation)
    return weight(p.item(), by_std, **options) * p


# -- one group ------------------------------------------------------------------------------------


@BY_STD
@pytest.mark.parametrize(
    ("method", "state", "conversation"),
    [
        (Grpo(), ProblemState(step=1), bare()),
        # 0 of 8 right at level 0: level 1; at level 1 more than 35 % right: level 0.
        (SageLight(max_level=2), ProblemState(level=0, accuracy=0.0, visits=1), FIRST_HINT),
        (SageLight(max_level=2), ProblemState(level=1, accuracy=0.5, visits=1), bare()),
        (Fixed(max_level=2, settings=FixedSettings(2)), ProblemState(), SECOND_HINT),
        # First steps without a hint: another prompt, the same estimator.
        (Ghpo(max_level=2), ProblemState(step=1), bare()),
        (Scaf(max_level=2, settings=ScafSettings(1)), ProblemState(step=1), bare()),
    ],
    ids=["grpo", "light up", "light down", "fixed", "cold start", "warm-up"],
)
def test_one_group_ascends_the_accuracy_under_its_prompt(method, state, conversation, by_std):
    policy = Policy(THREE)
    ways = every_outcome(method, policy, group_size=G, state=state)
    update = expected_update(ways, policy, size=G, by_std=by_std)
    # Without the deviation: (G-1) / G times the gradient of the accuracy, whatever p is. With it:
    # more for p near 0 and 1 than in the middle, F(p) in place of p.
    assert is_ascended(update, policy, moved(policy, conversation, by_std))


# -- how verl sums over tokens --------------------------------------------------------------------


def pull(policy, conversation, per_word):
    """Return sum_w per_word(w) log p(w), per_word frozen: an update by what each word gets."""
    return sum(
        per_word(word) * policy.token_log_probs(conversation, word).sum()
        for word in policy.words.scores
    )


def test_a_mean_over_each_responses_own_tokens_rewards_short_answers():
    policy = Policy(THREE)
    ways = every_outcome(Grpo(), policy, group_size=G)
    mode = "seq-mean-token-mean"
    update = expected_update(ways, policy, size=G, by_std=False, mode=mode)
    # (G-1)/G x (grad E[r / length] - p grad E[1 / length]).
    p = solved(policy, bare())
    by_length = policy.mean(bare(), lambda word: THREE.scores[word] / len(word))
    shortness = policy.mean(bare(), lambda word: 1 / len(word))
    objective = (G - 1) / G * (by_length - p.item() * shortness)
    gap = largest_difference(update, policy.gradient(objective))
    assert gap < 2e-8  # verl adds 1e-8 to each length


def test_a_mean_over_all_tokens_punishes_a_long_wrong_answer_less():
    policy = Policy(THREE)
    ways = every_outcome(Grpo(), policy, group_size=G)
    update = expected_update(ways, policy, size=G, by_std=False, mode="token-mean")
    # By hand: each row of a group gets (r - mean) / all tokens of the group.
    got = dict.fromkeys(THREE.scores, 0.0)
    for words in product(THREE.scores, repeat=G):
        chance = math.prod(policy.prob(bare(), word).item() for word in words)
        mean, tokens = sum(THREE.scores[each] for each in words) / G, sum(map(len, words))
        for word in words:
            got[word] += chance * (THREE.scores[word] - mean) / tokens
    assert is_ascended(update, policy, pull(policy, bare(), got.__getitem__))
    # "a" and "bb" are both wrong. What one of them gets each time that it is sampled:
    short, long = (got[word] / policy.prob(bare(), word).item() for word in ("a", "bb"))
    assert short < long < 0


# -- searches -------------------------------------------------------------------------------------


def reach(policy, conversations, tries=G):
    """Return the chance that a search fails at all of them, frozen."""
    return math.prod((1 - solved(policy, each).item()) ** tries for each in conversations)


@BY_STD
def test_sage_ascends_each_levels_accuracy_as_often_as_it_gets_there(by_std):
    policy = Policy(TWO)
    ways = every_outcome(Sage(max_level=2), policy, group_size=G)
    update = expected_update(ways, policy, size=G, by_std=by_std)
    objective = (
        moved(policy, bare(), by_std)
        + reach(policy, [bare()]) * moved(policy, FIRST_HINT, by_std)
        + reach(policy, [bare(), FIRST_HINT]) * moved(policy, SECOND_HINT, by_std)
    )
    # A group without a success has no gradient, so choosing by success changes nothing.
    assert is_ascended(update, policy, objective)


def test_sage_does_not_pay_level_zero_for_the_hint_that_it_then_avoids():
    # As an expectation of what it accepts, (G-1)/G sum_l reach_l p_l, the chance to get to a level
    # has a gradient too. SAGE has no such term: its bias is that term, and it would make level 0
    # worse, since a failure leads to a hint.
    policy = Policy(THREE)
    p0, p1 = (solved(policy, each) for each in (bare(), FIRST_HINT))
    ways = every_outcome(Sage(max_level=1), policy, group_size=G)
    update = expected_update(ways, policy, size=G, by_std=False)
    accepted = (G - 1) / G * (p0 + (1 - p0) ** G * p1)
    bias = (G - 1) / G * p1.item() * (1 - p0) ** G
    assert is_ascended(update, policy, accepted - bias)
    assert largest(policy.gradient(bias)) > 0.001


def test_a_hint_that_the_policy_writes_is_data_and_trains_nothing_of_itself():
    policy = Policy(THREE)
    source = SelfGenerated(texts=Texts(), attempts=1, max_level=1)
    ladders = [('{"level_1": "carry"}', 0.3), ('{"level_1": "split"}', 0.5), ("no hint", 0.2)]
    ways = every_outcome(
        Sage(max_level=1), policy, group_size=G, source=source, ladders=ladders, attempts=1
    )
    update = expected_update(ways, policy, size=G)
    # A text that cannot be read (0.2) leaves the group without a hint, which failed.
    failed = reach(policy, [bare()])
    objective = moved(policy, bare()) + failed * (
        0.3 * moved(policy, hinted("carry")) + 0.5 * moved(policy, hinted("split"))
    )
    assert is_ascended(update, policy, objective)


@pytest.mark.parametrize("probe_n", [1, 2])
def test_a_probe_keeps_the_direction_and_leaves_out_groups_that_it_misses(probe_n):
    policy = Policy(THREE)
    method = Sage(max_level=1, settings=SearchSettings(probe_n=probe_n))
    update = expected_update(every_outcome(method, policy, group_size=G), policy, size=G)

    def seen(k):
        """The chance that one of k right ones among G is among the first probe_n."""
        return 1 - math.comb(G - k, probe_n) / math.comb(G, probe_n)

    # The highest level is sampled whole.
    objective = moved(policy, bare(), trains=seen)
    objective = objective + reach(policy, [bare()], probe_n) * moved(policy, FIRST_HINT)
    assert is_ascended(update, policy, objective)
    p = solved(policy, bare()).item()
    assert weight(p, trains=seen) < weight(p)


# -- rewards of several parts ---------------------------------------------------------------------


def form_among_wrong(policy, conversation):
    """Return what the form alone would teach in a group where all are wrong, as a pull.

    (1-p)^G times sum over wrong words of p_w / (1-p) (R_w - their mean) log p_w.
    """
    wrong = {word: policy.prob(conversation, word).item() for word in ("aa", "ab")}
    total = sum(wrong.values())
    mean = 0.5 * wrong["ab"] / total
    excess = {"aa": 0.0 - mean, "ab": 0.5 - mean, "ba": 0.0, "bb": 0.0}
    return pull(
        policy,
        conversation,
        lambda word: total ** (G - 1) * wrong.get(word, 0.0) * excess[word],
    )


@pytest.mark.parametrize("on_all_failed", ["keep_last", "drop", "keep_level0"])
def test_ghpo_ascends_accuracy_and_form_but_for_the_form_of_groups_that_it_leaves(on_all_failed):
    policy = Policy(FORMED)
    method = Ghpo(max_level=1, settings=GhpoSettings(on_all_failed=on_all_failed))
    ways = every_outcome(method, policy, group_size=G)
    update = expected_update(ways, policy, size=G, by_std=False)

    def rewards(conversation):
        return policy.mean(
            conversation, lambda word: FORMED.scores[word] + 0.5 * (word in ("ab", "bb"))
        )

    # A group of wrong answers at level 0 is sampled again, with it goes what its form would teach.
    at_hint = rewards(FIRST_HINT)
    if on_all_failed != "keep_last":
        at_hint = at_hint - form_among_wrong(policy, FIRST_HINT)
    objective = rewards(bare()) - form_among_wrong(policy, bare())
    if on_all_failed == "keep_level0":
        both_fail = reach(policy, [FIRST_HINT])
        objective = objective + both_fail * form_among_wrong(policy, bare())
    objective = objective + reach(policy, [bare()]) * at_hint
    assert is_ascended(update, policy, (G - 1) / G * objective)
    assert largest(policy.gradient(form_among_wrong(policy, bare()))) > 1e-5


# -- rows that come from another prompt -----------------------------------------------------------


@BY_STD
@pytest.mark.parametrize("rollouts", [1, 2])
def test_scaf_adds_the_likelihood_of_an_injected_success(rollouts, by_std):
    policy = Policy(THREE)
    method = Scaf(max_level=2, settings=ScafSettings(increments=1, rollouts=rollouts))
    ways = every_outcome(method, policy, group_size=G)
    update = expected_update(ways, policy, size=G, by_std=by_std)
    # One success among G - 1 failures: s = sqrt((1/G - 1/G^2) G / (G-1)) = 1 / sqrt(G).
    s = 1 / math.sqrt(G) + EPSILON if by_std else 1.0
    p0, p1, p2 = (solved(policy, each) for each in (bare(), FIRST_HINT, SECOND_HINT))
    failed = (1 - p0.item()) ** G
    at_first = 1 - (1 - p1.item()) ** rollouts
    at_second = (1 - at_first) * (1 - (1 - p2.item()) ** rollouts)
    # The injected one pulls with grad log p_l, whatever p_l is: imitation of a success. The G - 1
    # that failed are pushed down under the bare prompt, with which none of them competed.
    injected = (1 - 1 / G) / s * (at_first * p1.log() + at_second * p2.log())
    pushed = (at_first + at_second) * (G - 1) * (-1 / G) / s * (1 - p0).log()
    objective = moved(policy, bare(), by_std) + failed / G * (injected + pushed)
    assert is_ascended(update, policy, objective)


@BY_STD
def test_training_under_the_bare_prompt_what_a_hint_brought_is_not_a_gradient(by_std):
    policy = Policy(THREE)
    method = Fixed(max_level=1, settings=FixedSettings(1))
    ways = every_outcome(method, policy, group_size=G, conditioning="unhinted")
    update = expected_update(ways, policy, size=G, by_std=by_std)
    p = solved(policy, FIRST_HINT).item()

    def gets(word):
        """Words come as often as under the hint: right ones pull with 1/p, wrong ones push."""
        share = policy.prob(FIRST_HINT, word).item()
        sign = 1 / p if THREE.right(word) else -1 / (1 - p)
        return weight(p, by_std) * p * (1 - p) * sign * share

    assert is_ascended(update, policy, pull(policy, bare(), gets))
    own = policy.gradient(moved(policy, bare(), by_std))
    assert largest_difference(update, own) > 0.01


def test_a_group_of_one_is_compared_with_nothing_and_ascends_the_accuracy_itself():
    policy = Policy(THREE)
    ways = every_outcome(Grpo(), policy, group_size=1)
    update = expected_update(ways, policy, size=1, by_std=False)
    assert is_ascended(update, policy, solved(policy, bare()))
