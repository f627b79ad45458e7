"""The engine between a visit and the rollout servers; the servers are scripted."""

import asyncio
from types import SimpleNamespace

import pytest
from fakes import Balancer

from recipe.hint.adapter.chat_template import Renderer
from recipe.hint.adapter.engine import VllmEngine
from recipe.hint.adapter.group_client import GroupClient, Sampling
from recipe.run.errors import StallError
from recipe.verify.schema import Verdict


class Tokenizer:
    eos_token_id = 0
    added_tokens_decoder = {ord(">"): SimpleNamespace(special=True)}

    def decode(self, ids, skip_special_tokens):
        return "".join(map(chr, ids))

    def __call__(self, text, add_special_tokens):
        return {"input_ids": [ord(char) for char in text]}

    def apply_chat_template(self, messages, tokenize=False, **options):
        return "".join(f"<{each['content']}>" for each in messages)

    def batch_decode(self, rows, skip_special_tokens):
        return [self.decode(row, skip_special_tokens) for row in rows]

    @property
    def backend_tokenizer(self):
        return self

    def encode_batch_fast(self, texts, add_special_tokens):
        return [SimpleNamespace(ids=[ord(char) for char in text]) for text in texts]


class Server:
    """Answers with the next of ``replies``; a string is an exception or a hang."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests = []
        self.generate_groups = self

    async def remote(self, requests, limit_s):
        [(prompt_ids, fields, request_id)] = requests
        self.requests.append((prompt_ids, fields, request_id))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if reply == "hang":
            await asyncio.wait_for(asyncio.sleep(60), limit_s)
        answer = {
            "token_ids": [[65 + row] for row in range(fields["n"])],
            "log_probs": [[-0.5]] * fields["n"],
            "finish": [reply] * fields["n"],
            "global_steps": 7,
        }
        return [answer]


class AlwaysWrong:
    async def grade_many(self, items, ids=None):
        return [Verdict(0.0, "wrong") for _ in items]


def make_engine(server, *, max_model_len=100, timeout_s=5.0, prompt_length=50):
    balancer = Balancer(server)
    client = GroupClient(balancer, max_model_len=max_model_len, timeout_s=timeout_s)
    engine = VllmEngine(
        client,
        Renderer(Tokenizer(), prompt_length),
        AlwaysWrong(),
        response_sampling=Sampling(n=3, max_tokens=20, temperature=1.0, top_p=0.9),
        hint_sampling=Sampling(n=1, max_tokens=11, temperature=0.7),
    )
    return engine, balancer


async def sampled(engine, prompt_ids, seed=1, rows=range(3)):
    [group] = await engine.sample_each([prompt_ids], [seed], rows)
    return group


def test_a_group_is_one_request_with_the_settings_of_the_rollouts():
    server = Server("stop")
    engine, balancer = make_engine(server)
    responses_G = asyncio.run(sampled(engine, [1, 2], seed=9))
    [(prompt_ids, fields, _)] = server.requests
    assert prompt_ids == [1, 2]
    assert fields == {
        "n": 3,
        "max_tokens": 20,
        "temperature": 1.0,
        "top_p": 0.9,
        "top_k": -1,
        "seed": 9,
    }
    assert [response.text for response in responses_G] == ["A", "B", "C"]
    assert {(response.min_step, response.max_step) for response in responses_G} == {(7, 7)}
    assert balancer.open == 0


@pytest.mark.parametrize(("own", "asked"), [(8, 8), (20, 20), (1024, 20)])  # a response has 20
def test_a_role_has_its_own_length_within_that_of_a_response(own, asked):
    server = Server("stop")
    engine, _ = make_engine(server)
    asyncio.run(engine.sample_each([[1, 2]], [9], range(3), own))
    [(_, fields, _)] = server.requests
    assert fields["max_tokens"] == asked


def test_the_hint_writer_has_settings_and_a_length_limit_of_its_own():
    server = Server("length")
    engine, _ = make_engine(server)
    reply = asyncio.run(engine.write([{"role": "user", "content": "Q"}], seed=3))
    [(_, fields, _)] = server.requests
    assert (fields["n"], fields["max_tokens"], fields["temperature"]) == (1, 11, 0.7)
    assert (reply.text, reply.tokens, reply.is_cut) == ("A", 1, True)


def test_a_server_that_does_not_answer_is_named_with_its_limit():
    engine, balancer = make_engine(Server("hang"), timeout_s=0.05)
    with pytest.raises(StallError, match=r"a group of 3 responses within .*rollout_s=0.05 s"):
        asyncio.run(sampled(engine, [1]))
    assert balancer.open == 0


def test_a_request_that_fills_the_context_gets_an_empty_reply_and_is_not_sent():
    server = Server("stop")
    engine, _ = make_engine(server, max_model_len=4)
    reply = asyncio.run(engine.write([{"role": "user", "content": "long"}], seed=1))
    assert (reply.text, reply.tokens) == ("", 0)
    assert server.requests == []


def test_rows_of_a_group_are_sampled_with_the_seeds_they_have_in_it():
    server = Server("stop")
    engine, _ = make_engine(server)
    assert engine.group_size == 3
    responses_G = asyncio.run(sampled(engine, [1], seed=9, rows=range(1, 3)))
    [(_, fields, _)] = server.requests
    assert (fields["n"], fields["seed"]) == (2, 10)  # answer i of a group has seed + i
    assert len(responses_G) == 2


def test_a_given_text_above_the_longest_response_is_cut_and_truncated():
    engine, _ = make_engine(Server("stop"))
    # 19 characters and the end of the turn are the 20 tokens of a response.
    assert not engine.given_response("x" * 19).is_truncated
    response = engine.given_response("x" * 20)
    assert response.is_truncated
    assert len(response.token_ids_T) == 20
