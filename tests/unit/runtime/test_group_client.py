"""Groups across weight updates; the server is scripted, one version of the weights per request."""

import asyncio
from types import SimpleNamespace

import pytest
from fakes import Balancer

from recipe.hint.adapter import group_client
from recipe.hint.adapter.group_client import GroupClient, Sampling

EOS = 0


class Server:
    """Every response is the tokens 100, 101, ... up to a length of its own, and an end.

    Request number k is answered by version k of the weights, and stopped once a response has had
    ``budgets[k]`` tokens; the log-probability of a token is its version's number, negative.
    """

    def __init__(self, lengths, budgets):
        self.lengths = lengths
        self.budgets = budgets
        self.requests = []
        self.calls = []  # prompts of each call
        self.generate_groups = SimpleNamespace(remote=self._several)

    async def _several(self, asked, limit_s):
        self.calls.append([prompt_ids for prompt_ids, _, _ in asked])
        return [self._answer(prompt_ids, fields) for prompt_ids, fields, _ in asked]

    def _answer(self, prompt_ids, fields):
        version = len(self.requests)
        self.requests.append((prompt_ids, fields))
        budget = self.budgets[version] if version < len(self.budgets) else 10**6
        rows = range(fields["n"])
        if len(prompt_ids) > 1:  # prompt, the response's own name, and what it has already
            rows = [prompt_ids[1] - 1000]
        answered = [self._respond(row, prompt_ids, fields, budget) for row in rows]
        return {
            "token_ids": [tokens for tokens, _ in answered],
            "log_probs": [[-float(version)] * len(tokens) for tokens, _ in answered],
            "finish": [finish for _, finish in answered],
            "global_steps": version,
        }

    def _respond(self, row, prompt_ids, fields, budget):
        whole = [1000 + row, *range(101, 100 + self.lengths[row]), EOS]
        tokens = whole[len(prompt_ids) - 1 :]
        allowed = min(budget, fields["max_tokens"])
        if len(tokens) <= allowed:
            return tokens, "stop"
        return tokens[:allowed], "length" if allowed == fields["max_tokens"] else "abort"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(group_client, "_PAUSE_S", 0.0)


def sample(lengths, budgets, *, max_tokens=50, **more):
    """A group with one response per length, and the requests that it took."""
    balancer = Balancer(Server(lengths, budgets))
    client = GroupClient(balancer, max_model_len=100, timeout_s=5.0, **more)
    sampling = Sampling(n=len(lengths), max_tokens=max_tokens, temperature=1.0)
    [group] = asyncio.run(client.sample_each([[7]], sampling, [3]))
    assert balancer.open == 0
    return group, balancer.server.requests


def test_a_group_that_no_update_stops_is_one_request():
    group, requests = sample([3, 5], budgets=[])
    assert len(requests) == 1
    assert [len(each.token_ids_T) for each in group] == [4, 6]  # 3 + the end, 5 + the end
    assert {(each.min_step, each.max_step) for each in group} == {(0, 0)}


def test_a_stopped_response_goes_on_from_its_last_token_and_the_others_stay():
    # Version 0 gives 4 tokens: the first response is whole, the second has 4 of 10 + 1.
    [short, long], requests = sample([3, 10], budgets=[4])
    assert (short.finish, short.min_step, short.max_step) == ("stop", 0, 0)
    assert list(long.token_ids_T) == [1001, *range(101, 110), EOS]
    assert (long.finish, long.min_step, long.max_step) == ("stop", 0, 1)
    assert requests[1][0] == [7, 1001, 101, 102, 103]
    assert (requests[1][1]["n"], requests[1][1]["max_tokens"]) == (1, 46)  # 50 - 4


def test_without_seeds_none_is_sent():
    _, requests = sample([30], budgets=[10], is_seeded=False)
    assert [fields["seed"] for _, fields in requests] == [None, None]


def test_any_order_of_stops_gives_the_response_that_no_stop_gives():
    [whole], _ = sample([30], budgets=[])
    for first in range(31):
        for second in range(31 - first):
            [pieces], _ = sample([30], budgets=[first, second])
            assert pieces.token_ids_T == whole.token_ids_T, (first, second)
            assert len(pieces.log_probs_T) == len(pieces.token_ids_T)


def sample_each(lengths, budgets):
    """Responses to one prompt of each length, and the server."""
    server = Server(lengths, budgets)
    client = GroupClient(Balancer(server), max_model_len=100, timeout_s=5.0)
    sampling = Sampling(n=1, max_tokens=50, temperature=1.0)
    prompts = [[7, 1000 + row] for row in range(len(lengths))]
    seeds = [30 + row for row in range(len(lengths))]
    found = asyncio.run(client.sample_each(prompts, sampling, seeds))
    assert client._client.open == 0
    return found, server


def test_of_several_prompts_those_without_a_token_are_asked_again_and_those_with_some_go_on():
    # The first call: prompt 0 is stopped after two tokens, prompt 1 before its first one.
    found, server = sample_each([5, 5], budgets=[2, 0])
    assert server.calls == [[[7, 1000], [7, 1001]], [[7, 1000, 101, 102]], [[7, 1001]]]
    assert server.requests[3][1]["seed"] == 31  # as if it had not been asked
    whole = [101, 102, 103, 104, EOS]
    assert [list(group[0].token_ids_T) for group in found] == [whole, whole]
    assert [(group[0].min_step, group[0].max_step) for group in found] == [(0, 2), (3, 3)]
