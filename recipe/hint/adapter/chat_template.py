"""What a model's chat template makes of a conversation, and where its responses end."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from jinja2 import TemplateError

from recipe.hint.prompt import Message, fold_system
from recipe.hint.turns import Turn

_USER = {"role": "user", "content": "Question"}
_TALK = [_USER, {"role": "assistant", "content": "Response"}, _USER]
_THOUGHTS = ("<think>", "</think>")  # the policy's own, which some templates put into a turn too
BREAK = "\uffff"  # no character of any text; where it stands, tokens end


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

    def render(
        self,
        messages: Sequence[Message],
        *,
        follows: Turn | None = None,
        quotes: Turn | None = None,
    ) -> array[int]:
        """Return the token ids (``Engine.render``); an assistant's turn at its end is left open.

        A response in it stays as the policy saw it, token by token, where the template leaves its
        text as it is; where it drops thoughts or spaces, all is rendered anew.
        """
        *turns, last = messages
        if last["role"] == "assistant":
            return _joined(self.render(turns), self._plain_ids(last["content"]))
        if not self._is_of_tokenizer:
            return _joined(self.template.build_initial_tokens(self._taken(messages)))
        whole = self.text(messages)
        if follows and (own := self._sampled(follows)):
            before = self._text_of_group(tuple(tuple(each.items()) for each in follows.messages))
            begun = before + self._plain(follows.response.text)
            rest = self._quoting(whole[len(begun) :], quotes) if whole.startswith(begun) else ()
            if rest and not self._is_text_V[rest[0]]:
                return _joined(follows.prompt_ids_T, own, rest)
        return self._quoting(whole, quotes)

    def text(self, messages: Sequence[Message]) -> str:
        """Return the rendered text, with a break inside all that looks like a special token."""
        turns = [{**turn, "content": self._plain(turn["content"])} for turn in messages]
        return _text(self.tokenizer, self.options, self._taken(turns))

    def response(self, text: str) -> list[int]:
        """Return the token ids of a response with the end of its turn."""
        end = end_of_turn(self.tokenizer, self.options)
        return [*self._plain_ids(text), self.tokenizer.eos_token_id if end is None else end]

    def _sampled(self, turn: Turn) -> Sequence[int]:
        """Return the tokens of a response without the end of its turn; empty unless all are text.

        Empty too for a response that its prompt begins: the text has more than the tokens.
        """
        if turn.response.is_given or turn.messages[-1]["role"] != "user":
            return ()
        own_T = np.asarray(turn.response.token_ids_T, dtype=np.int64)
        is_text_T = self._is_text_V.take(own_T, mode="clip")
        num_text = int(np.count_nonzero(is_text_T))
        if not num_text or num_text < own_T.size - (not is_text_T[-1]):
            return ()
        return turn.response.token_ids_T[:num_text]

    def _quoting(self, text: str, turn: Turn | None) -> array[int]:
        """Return the tokens of rendered text; a response that it quotes once keeps its own."""
        own = self._sampled(turn) if turn and self._joins else ()
        quoted = self._plain(turn.response.text) if turn and own else ""
        if not quoted or text.count(quoted) != 1:
            return _joined(self._ids(text))
        before, _, after = text.partition(quoted)
        return _joined(self._ids(before), own, self._ids(after))

    def _plain(self, text: str) -> str:
        text = text.replace(BREAK, "\ufffd")
        return self._special.sub(rf"\g<0>{BREAK}", text) if self._special.search(text) else text

    def _taken(self, messages: Sequence[Message]) -> list[Message]:
        return list(fold_system(messages) if self.folds_system else messages)

    def _encode(self, text: str) -> array[int]:
        """Return the tokens of rendered text: those of a call, without the place of each in it."""
        backend = self.tokenizer.backend_tokenizer
        backend.encode_special_tokens = False  # `plain_ids` leaves it on
        parts = backend.encode_batch_fast(text.split(BREAK), add_special_tokens=False)
        return _joined(*(part.ids for part in parts))

    def _plain_ids(self, text: str) -> Sequence[int]:
        if hasattr(self.tokenizer, "backend_tokenizer"):
            return self._encode(self._plain(text))
        return plain_ids(self.tokenizer, text)

    # What a group shares: the text before a response, and the tokens around it.

    @cached_property
    def _text_of_group(self) -> Callable[[tuple], str]:
        return lru_cache(1)(lambda turns: self.text([dict(turn) for turn in turns]))

    @cached_property
    def _ids(self) -> Callable[[str], array[int]]:
        return lru_cache(16)(self._encode)

    @cached_property
    def _special(self) -> re.Pattern[str]:
        """The first character of each special token; one character alone has no inside."""
        added = self.tokenizer.added_tokens_decoder
        names = [str(added[index]) for index in self._control_ids]
        begun = [f"{re.escape(name[0])}(?={re.escape(name[1:])})" for name in names if name[1:]]
        return re.compile("|".join(begun) or r"(?!)", re.DOTALL)

    @cached_property
    def _joins(self) -> bool:
        """Whether pieces of a text that are tokenized apart read as the text."""
        pieces = ("Question:\n", "Response", "\n\nthe end")
        ids = [index for piece in pieces for index in self._ids(piece)]
        return self.tokenizer.decode(ids) == "".join(pieces)

    @cached_property
    def _is_text_V(self) -> np.ndarray:
        """Whether each token is text; others end a turn or have no text, as the last one here."""
        ids = list(self.tokenizer.get_vocab().values())
        is_text_V = np.zeros(max(ids) + 2, dtype=bool)
        is_text_V[ids] = True
        is_text_V[list(self._control_ids)] = False
        return is_text_V

    @cached_property
    def _control_ids(self) -> frozenset[int]:
        """The tokens that no text may become: special ones, and what begins and ends turns.

        Some tokenizers do not mark the latter as special, such as DeepSeek's distilled models.
        """
        try:
            turns = self._taken(_TALK)
            text = self.tokenizer.apply_chat_template(turns, tokenize=False, **self.options)
            around = set(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        except (TemplateError, ValueError):  # no template, or none for several turns
            around = set()
        return frozenset(
            index
            for index, token in self.tokenizer.added_tokens_decoder.items()
            if token.special or (index in around and str(token) not in _THOUGHTS)
        )

    @cached_property
    def _is_of_tokenizer(self) -> bool:
        """Whether verl's builder makes the tokens that a fast tokenizer makes of the template."""
        try:
            own = self._encode(self.text(_TALK)).tolist()
            return own == self.template.build_initial_tokens(_TALK)
        except (AttributeError, TemplateError, ValueError):  # no fast one, or no template
            return False


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


def unfixed_date(tokenizer: Any, options: Mapping[str, Any]) -> bool:
    """Return whether the template writes today's date, so that prompts change overnight."""
    return "strftime_now" in str(tokenizer.chat_template) and "date_string" not in options


def end_of_turn(tokenizer: Any, options: Mapping[str, Any]) -> int | None:
    """Return the token that the template puts after a response; ``None`` where it puts none."""
    try:
        text = tokenizer.apply_chat_template(_TALK[:2], tokenize=False, **options)
    except TemplateError:
        return None
    found = tokenizer(text.rpartition("Response")[2], add_special_tokens=False)["input_ids"]
    # Plain text ends no response.
    return found[0] if found and found[0] in tokenizer.added_tokens_decoder else None


def plain_ids(tokenizer: Any, text: str) -> list[int]:
    """Return the tokens of a text; what looks like a special token in it is plain text."""
    return tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]


def text_after(tokenizer: Any, token_id: int, ids_T: Sequence[int]) -> str:
    """Return the text of tokens as it reads after another one.

    By themselves they may lose a space: SentencePiece's decoders take off a text's first one.
    """
    before, whole = tokenizer.batch_decode(
        [[token_id], [token_id, *ids_T]], skip_special_tokens=True
    )
    if whole.startswith(before):
        return whole[len(before) :]
    return tokenizer.decode(ids_T, skip_special_tokens=True)  # a character in two tokens
