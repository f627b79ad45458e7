"""What a model's chat template makes of a conversation, and where its responses end."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from jinja2 import TemplateError

from recipe.hint.prompt import Message, fold_system
from recipe.hint.turns import Turn

_USER = {"role": "user", "content": "Question"}
_DATE = "date_string"
_BREAK = "\uffff"  # no character of any text; where it stands, tokens end


@dataclass(frozen=True)
class Renderer:
    """Messages to tokens and back; ``template`` is what verl's own agent loops use.

    What looks like a special token in a message is plain text: nobody who writes a problem, a hint
    or a response can end a turn or begin one.

    ``folds_system``: the chat template refuses a system turn, so its text goes into the user's.
    ``options`` are further variables of the template.
    """

    tokenizer: Any
    template: Any
    prompt_length: int
    folds_system: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def render(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of a conversation; an assistant's turn at its end is left open."""
        *turns, last = messages
        if last["role"] != "assistant":
            return self._rendered(messages)
        return [*self._rendered(turns), *plain_ids(self.tokenizer, last["content"])]

    def render_follow_up(self, turn: Turn, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of a conversation that goes on from a turn.

        What was sampled stays as the policy saw it, token by token, where the template leaves the
        text of the response as it is; where it drops thoughts or spaces all is rendered anew.
        """
        own = list(turn.response.token_ids_T)
        if own and own[-1] not in self._words:
            own.pop()
        is_whole = own and not turn.response.is_given and turn.messages[-1]["role"] == "user"
        if is_whole and self._words.issuperset(own) and self._is_of_tokenizer:
            text_of, ids_of = self._of_group
            before = text_of(tuple(tuple(each.items()) for each in turn.messages))
            begun, whole = before + self._plain(turn.response.text), self._text(messages)
            rest = ids_of(whole[len(begun) :]) if whole.startswith(begun) else []
            if rest and rest[0] not in self._words:
                return [*turn.prompt_ids_T, *own, *rest]
        return self.render(messages)

    def _rendered(self, messages: Sequence[Message]) -> list[int]:
        if self._is_of_tokenizer:
            return self._ids(self._text(messages))
        return list(self.template.build_initial_tokens(self._taken(messages)))

    def _text(self, messages: Sequence[Message]) -> str:
        """Return the rendered text, with a break inside all that looks like a special token."""
        turns = [{**turn, "content": self._plain(turn["content"])} for turn in messages]
        return _text(self.tokenizer, self.options, self._taken(turns))

    def _plain(self, text: str) -> str:
        return self._special.sub(rf"\g<0>{_BREAK}", text.replace(_BREAK, "\ufffd"))

    @cached_property
    def _special(self) -> re.Pattern[str]:
        """The first character of each special token; one character alone has no inside."""
        names = [str(each) for each in self.tokenizer.added_tokens_decoder.values() if each.special]
        longer = [re.escape(name) for name in names if len(name) > 1]
        return re.compile(rf"(?={'|'.join(longer)}).", re.DOTALL) if longer else re.compile(r"(?!)")

    def _taken(self, messages: Sequence[Message]) -> list[Message]:
        """Return the turns in a form that the template takes."""
        return list(fold_system(messages) if self.folds_system else messages)

    def _ids(self, text: str) -> list[int]:
        """Return the tokens of rendered text: those of a call, without the place of each in it."""
        backend = self.tokenizer.backend_tokenizer
        backend.encode_special_tokens = False  # `plain_ids` leaves it on
        parts = backend.encode_batch_fast(text.split(_BREAK), add_special_tokens=False)
        return [index for part in parts for index in part.ids]

    @cached_property
    def _of_group(self) -> tuple[Callable[[tuple], str], Callable[[str], list[int]]]:
        """The text before a response and the tokens behind it, which a group mostly shares."""
        return (
            lru_cache(1)(lambda turns: self._text([dict(turn) for turn in turns])),
            lru_cache(1)(self._ids),
        )

    @cached_property
    def _words(self) -> frozenset[int]:
        """The tokens that are text; all others end a turn or have no text."""
        added = self.tokenizer.added_tokens_decoder
        special = {index for index, token in added.items() if token.special}
        return frozenset(self.tokenizer.get_vocab().values()) - special

    @cached_property
    def _is_of_tokenizer(self) -> bool:
        """Whether verl's builder makes the tokens that a fast tokenizer makes of the template."""
        turns = [_USER, {"role": "assistant", "content": "Response"}, _USER]
        try:
            return self._ids(self._text(turns)) == self.template.build_initial_tokens(turns)
        except (AttributeError, TemplateError, ValueError):  # no fast one, or no template
            return False

    def response(self, text: str) -> list[int]:
        """Return the token ids of a response with the end of its turn."""
        return response_ids(self.tokenizer, self.options, text)


def refuses_system(tokenizer: Any, options: Mapping[str, Any]) -> bool:
    """Return whether the template takes a conversation without a system turn alone.

    Args:
        tokenizer: A transformers tokenizer with a chat template.
        options: Further variables of the template.
    """
    try:
        _text(tokenizer, options, [_USER])
    except (TemplateError, ValueError):
        return False  # it refuses more than the system turn, or there is none
    try:
        _text(tokenizer, options, [{"role": "system", "content": "Rules"}, _USER])
    except TemplateError:
        return True
    return False


def unfixed_date(tokenizer: Any, options: Mapping[str, Any]) -> bool:
    """Return whether the template writes today's date, so that prompts change overnight."""
    return "strftime_now" in str(tokenizer.chat_template) and _DATE not in options


def end_of_turn(tokenizer: Any, options: Mapping[str, Any]) -> int | None:
    """Return the token that the template puts behind a response; ``None`` where it puts none."""
    turns = [_USER, {"role": "assistant", "content": "Response"}]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False, **options)
    except TemplateError:
        return None
    after = text.rpartition("Response")[2]
    found = tokenizer(after, add_special_tokens=False)["input_ids"]
    # Plain text ends no response.
    return found[0] if found and found[0] in tokenizer.added_tokens_decoder else None


def response_ids(tokenizer: Any, options: Mapping[str, Any], text: str) -> list[int]:
    """Return the tokens of a text as a response, with the one that ends its turn."""
    end = end_of_turn(tokenizer, options)
    return [*plain_ids(tokenizer, text), tokenizer.eos_token_id if end is None else end]


def plain_ids(tokenizer: Any, text: str) -> list[int]:
    """Return the tokens of a text; what looks like a special token in it is plain text."""
    return tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]


def _text(tokenizer: Any, options: Mapping[str, Any], messages: Sequence[Message]) -> str:
    return tokenizer.apply_chat_template(
        list(messages), add_generation_prompt=True, tokenize=False, **options
    )


def text_behind(tokenizer: Any, token_id: int, ids_T: Sequence[int]) -> str:
    """Return the text of tokens as it reads behind another one.

    By themselves they may lose a space: SentencePiece's decoders take off a text's first one.
    """
    before, whole = tokenizer.batch_decode(
        [[token_id], [token_id, *ids_T]], skip_special_tokens=True
    )
    if whole.startswith(before):
        return whole[len(before) :]
    return tokenizer.decode(ids_T, skip_special_tokens=True)  # a character in two tokens
