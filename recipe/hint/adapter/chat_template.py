"""What a model's chat template makes of a conversation, and where its responses end."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jinja2 import TemplateError

from recipe.hint.prompt import Message, fold_system
from recipe.hint.turns import Turn

_USER = {"role": "user", "content": "Question"}
_TALK = [_USER, {"role": "assistant", "content": "Response"}, _USER]
_THOUGHTS = ("<think>", "</think>")  # the policy's own, which some templates put into a turn too
BREAK = "\uffff"  # no character of any text; where it stands, tokens end


@dataclass(frozen=True)
class Renderer:
    """Messages to tokens and back, by a fast tokenizer and its template with ``options``.

    What looks like a special token in a message is plain text: nobody who writes a problem, a hint
    or a response can end a turn or begin one. With ``folds_system`` the chat template refuses a
    system turn, so its text goes into the user's.
    """

    tokenizer: Any
    prompt_length: int
    folds_system: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def render(self, messages: Sequence[Message], *, follows: Turn | None = None) -> array[int]:
        """Return the token ids (``Engine.render``); an assistant's turn at its end is left open.

        A response in it stays as the policy saw it, token by token, where the template leaves its
        text as it is; where it drops thoughts or spaces, all is rendered anew.
        """
        *turns, last = messages
        if last["role"] == "assistant":
            return _joined(self.render(turns), self._ids(self._plain(last["content"])))
        whole = self.text(messages)
        if follows and (own := self._sampled(follows)):
            begun = self.text(follows.messages) + self._plain(follows.response.text)
            rest = self._ids(whole[len(begun) :]) if whole.startswith(begun) else ()
            if rest and rest[0] in self._control_ids:
                return _joined(follows.prompt_ids_T, own, rest)
        return self._ids(whole)

    def text(self, messages: Sequence[Message]) -> str:
        """Return the rendered text, with a break inside all that looks like a special token."""
        turns = [{**turn, "content": self._plain(turn["content"])} for turn in messages]
        turns = fold_system(turns) if self.folds_system else turns
        return _text(self.tokenizer, self.options, turns)

    def response(self, text: str) -> list[int]:
        """Return the token ids of a response with the end of its turn."""
        end = end_of_turn(self.tokenizer, self.options)
        own = self._ids(self._plain(text))
        return [*own, self.tokenizer.eos_token_id if end is None else end]

    def _sampled(self, turn: Turn) -> Sequence[int]:
        """Return the tokens of a response without the end of its turn; empty unless all are text.

        Empty too for a response that its prompt begins: the text has more than the tokens.
        """
        own_T = turn.response.token_ids_T
        if turn.response.is_given or turn.messages[-1]["role"] != "user" or not len(own_T):
            return ()
        own_T = own_T[:-1] if own_T[-1] in self._control_ids else own_T
        return own_T if self._control_ids.isdisjoint(own_T) else ()

    def _plain(self, text: str) -> str:
        return self._special.sub(rf"\g<0>{BREAK}", text.replace(BREAK, "\ufffd"))

    def _ids(self, text: str) -> array[int]:
        """Return the tokens of rendered text: those of a call, without the place of each in it."""
        backend = self.tokenizer.backend_tokenizer
        backend.encode_special_tokens = False  # a call with `split_special_tokens` leaves it on
        parts = backend.encode_batch_fast(text.split(BREAK), add_special_tokens=False)
        return _joined(*(part.ids for part in parts))

    @cached_property
    def _special(self) -> re.Pattern[str]:
        """The first character of each special token; one character alone has no inside."""
        added = self.tokenizer.added_tokens_decoder
        names = [str(added[index]) for index in self._control_ids]
        begun = [f"{re.escape(name[0])}(?={re.escape(name[1:])})" for name in names if name[1:]]
        return re.compile("|".join(begun) or r"(?!)", re.DOTALL)

    @cached_property
    def _control_ids(self) -> frozenset[int]:
        """The tokens that no text may become: special ones, and what begins and ends turns.

        Some tokenizers do not mark the latter as special, such as DeepSeek's distilled models.
        """
        try:
            text = self.tokenizer.apply_chat_template(_TALK, tokenize=False, **self.options)
            around = set(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        except (TemplateError, ValueError):  # no template, or none for several turns
            around = set()
        return frozenset(
            index
            for index, token in self.tokenizer.added_tokens_decoder.items()
            if token.special or (index in around and str(token) not in _THOUGHTS)
        )


def _joined(*parts: Iterable[int]) -> array[int]:
    ids_T: array[int] = array("q")
    for part in parts:
        ids_T.extend(part)
    return ids_T


def _text(tokenizer: Any, options: Mapping[str, Any], messages: Sequence[Message]) -> str:
    return tokenizer.apply_chat_template(
        list(messages), add_generation_prompt=True, tokenize=False, **options
    )


def refuses_system(tokenizer: Any, options: Mapping[str, Any]) -> bool:
    """Return whether the template takes a conversation without a system turn alone."""
    try:
        _text(tokenizer, options, [_USER])
    except (TemplateError, ValueError):
        return False  # it refuses more than the system turn, or there is none
    try:
        _text(tokenizer, options, [{"role": "system", "content": "Rules"}, _USER])
    except TemplateError:
        return True
    return False


def end_of_turn(tokenizer: Any, options: Mapping[str, Any]) -> int | None:
    """Return the token that the template puts after a response; ``None`` where it puts none."""
    try:
        text = tokenizer.apply_chat_template(_TALK[:2], tokenize=False, **options)
    except TemplateError:
        return None
    found = tokenizer(text.rpartition("Response")[2], add_special_tokens=False)["input_ids"]
    # Plain text ends no response.
    return found[0] if found and found[0] in tokenizer.added_tokens_decoder else None
