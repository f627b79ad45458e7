"""What a model's chat template makes of a conversation, and where its responses end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jinja2 import TemplateError

from recipe.hint.prompt import Message, fold_system

_USER = {"role": "user", "content": "Question"}
_DATE = "date_string"


@dataclass(frozen=True, slots=True)
class Renderer:
    """Messages to tokens and back; ``template`` is what verl's own agent loops use.

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
        *turns, last = fold_system(messages) if self.folds_system else messages
        if last["role"] != "assistant":
            return list(self.template.build_initial_tokens([*turns, last]))
        prompt_ids = self.template.build_initial_tokens(turns)
        return [*prompt_ids, *plain_ids(self.tokenizer, last["content"])]

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
