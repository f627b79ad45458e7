"""Types that the rollout loop and the methods exchange: requests, results, decisions.

A method requests a :class:`Sample` of generations, gets back a :class:`Round` of
:class:`Turn`, and ends with :class:`Train`. The first prompt of a problem, a hinted one and a
follow-up to an earlier response differ only in their :class:`PromptSpec`.

Shapes: ``G`` rollouts of one group, ``T`` tokens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from recipe.hint.hints.base import HintResult
from recipe.hint.hints.fitting import cut_at_sentence
from recipe.hint.prompt import Messages, Prompt, Style, Texts, fill, with_hint
from recipe.hint.schema import HintStatus, Response
from recipe.problems.schema import Problem
from recipe.verify.schema import Verdict


class Place(NamedTuple):
    """Where a turn stands in a prompt rollout: its round, and its number there, from 0."""

    round: int
    turn: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One generation and the conversation that it continues.

    Attributes:
        messages: The conversation, without the response.
        prompt_ids_T: Its tokens.
        response: What was generated.
        verdict: Its grade; ``None`` when the request did not ask for one.
        parent: The earlier turn that the conversation continues; ``None``: the problem itself.
        has_leak: Whether the text gives the answer away, where ``Sample.finds_leaks`` asked.
    """

    messages: Messages
    prompt_ids_T: Sequence[int]
    response: Response
    verdict: Verdict | None = None
    parent: Place | None = None
    has_leak: bool = False

    @property
    def is_graded(self) -> bool:
        """Whether the turn has a grade and the verifier did not fail."""
        return self.verdict is not None and not self.verdict.is_ungraded

    @property
    def is_right(self) -> bool:
        """Whether the verdict's score is above 0; rewards for form or length do not count."""
        return self.verdict is not None and self.verdict.score > 0


@dataclass(frozen=True, slots=True)
class PromptContext:
    """What a prompt is built from.

    Attributes:
        style: How a hint enters it (``prompt.with_hint``).
        too_long: ``cut`` or ``skip``, what to do with a hint that does not fit.
        render: Returns the tokens of a conversation (``Engine.render``).
        fits: Whether a prompt is within ``rollout.prompt_length``.
        write_hints: Writes the hints of this prompt rollout; later calls return the same ones.
        turn: Looks up an earlier turn.
    """

    problem: Problem
    texts: Texts
    style: Style
    too_long: str
    render: Callable[..., Sequence[int]]
    fits: Callable[[Sequence[int]], bool]
    write_hints: Callable[[], Awaitable[HintResult]]
    turn: Callable[[Place], Turn]

    def fitting_prompt(
        self,
        messages: Messages,
        status: HintStatus = "none",
        hint: str = "",
        *,
        follows: Turn | None = None,
    ) -> Prompt:
        """Return the prompt of a conversation, or a ``too_long`` one if it does not fit.

        ``follows`` is an earlier turn, as in ``Engine.render``.
        """
        prompt_ids_T = self.render(messages, follows=follows)
        if not self.fits(prompt_ids_T):
            return Prompt(status="too_long", hint=hint)
        return Prompt(messages, status, hint, prompt_ids_T)


class PromptSpec:
    """How the prompt of a turn is made.

    ``kind`` names it in the records, ``level`` is its hint level (0: no hint).
    """

    kind: ClassVar[str]
    level: int = 0

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the conversation of one turn; ``parent`` is the turn that it continues."""
        raise NotImplementedError


@dataclass(frozen=True)
class Bare(PromptSpec):
    """The problem as the data gives it."""

    kind: ClassVar[str] = "bare"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the problem's own conversation."""
        return Prompt(context.problem.messages)


@dataclass(frozen=True)
class Hinted(PromptSpec):
    """The problem with the hint of one level, 1..L."""

    level: int = 1
    kind: ClassVar[str] = "hinted"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the hinted conversation; a hint that does not fit is cut, or its level skipped."""
        written = await context.write_hints()
        if written.status != "ok":
            return Prompt(status=written.status)
        hint = written.hints_L[self.level - 1]
        if not hint:  # emptied by the leak guard (hint.leak_policy=drop)
            return Prompt(status="leaked")

        def showing(text: str, status: HintStatus = "cut") -> Prompt:
            messages = with_hint(context.problem.messages, text, context.texts, context.style)
            return context.fitting_prompt(tuple(messages), status, text)

        whole = showing(hint, "ok")
        if whole.is_usable or context.too_long != "cut":
            return whole
        shorter = cut_at_sentence(hint, lambda text: showing(text).is_usable)
        return showing(shorter) if shorter else whole


@dataclass(frozen=True)
class FollowUp(PromptSpec):
    """The conversation so far, the parent's response, and one more user turn.

    ``level`` is that of the hint that the conversation began with.
    """

    instruction: str
    level: int = 0
    kind: ClassVar[str] = "follow_up"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the longer conversation."""
        assert parent is not None, "FollowUp needs Sample.parents"
        reply = {"role": "assistant", "content": parent.response.text}
        asked = {"role": "user", "content": self.instruction}
        messages = (*parent.messages, reply, asked)
        return context.fitting_prompt(messages, follows=parent)


@dataclass(frozen=True)
class Revise(PromptSpec):
    """The conversation so far, and the instruction to revise it (``Texts.revise``)."""

    kind: ClassVar[str] = "revise"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the longer conversation."""
        return await FollowUp(context.texts.revise).build(context, parent)


@dataclass(frozen=True)
class Feedback(PromptSpec):
    """What the guide is asked about a response: it sees the problem and that response."""

    kind: ClassVar[str] = "feedback"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the guide's conversation."""
        assert parent is not None, "Feedback needs Sample.parents"
        problem, attempt = context.problem.text, parent.response.text
        user = fill(context.texts.guide_user, problem=problem, attempt=attempt)
        system = {"role": "system", "content": context.texts.guide_system}
        return context.fitting_prompt((system, {"role": "user", "content": user}))


@dataclass(frozen=True)
class Refine(PromptSpec):
    """The conversation that got feedback, and the feedback; the parent is the feedback's turn."""

    kind: ClassVar[str] = "refine"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the longer conversation."""
        assert parent is not None and parent.parent is not None, "Refine needs feedback"
        instruction = fill(context.texts.refine, feedback=parent.response.text)
        return await FollowUp(instruction).build(context, context.turn(parent.parent))


def at_level(level: int) -> PromptSpec:
    """Return the prompt of a hint level; level 0 is the problem itself."""
    return Hinted(level) if level else Bare()


@dataclass(frozen=True, slots=True)
class Sample:
    """A request: ``n`` generations for the problem, or for each parent.

    Attributes:
        prompt: How the prompt is made.
        n: Generations per prompt; 0 is the group size G. Not read beside ``given``.
        parents: Earlier turns to continue; ``None``: the problem itself. An empty tuple gives a
            round without turns.
        is_graded: Whether the responses are graded.
        role: Who speaks: ``solver``, ``guide``, ...
        max_tokens: Longest response, at most the rollouts'; 0: theirs.
        given: Responses that are not sampled but known, such as a reference solution.
        asks_teacher: Whether the endpoint of ``hint.teacher`` writes the responses. They have no
            tokens and cannot train.
        finds_leaks: Whether texts are searched for the final answer (``Turn.has_leak``).
        is_probe: Stop after ``n`` responses if all are graded wrong; otherwise, or if one is
            ungraded, sample up to G. Not together with ``parents``.
        writes_hints_early: Have the hints written while this group is being sampled.
        is_off_schedule: Outside the method's search or schedule: the group ends the search whatever
            its outcome. In the first round it also keeps what is remembered of the problem's level.
    """

    prompt: PromptSpec = Bare()
    n: int = 0
    parents: tuple[Place, ...] | None = None
    is_graded: bool = True
    role: str = "solver"
    max_tokens: int = 0
    given: tuple[str, ...] = ()
    asks_teacher: bool = False
    finds_leaks: bool = False
    is_probe: bool = False
    writes_hints_early: bool = False
    is_off_schedule: bool = False

    def count(self, group_size: int) -> int:
        """Return the number of generations per prompt; a probe has fewer than a whole group."""
        return len(self.given) or self.n or group_size


@dataclass(frozen=True, slots=True)
class Round:
    """The result of a request; it has no turns if its prompt could not be made.

    Accuracies are 1 for right and 0 for wrong, whatever a method adds to them for training.

    Attributes:
        hint_status: What became of the hint, or of the first prompt that could not be made;
            ``generation_failed`` too where a teacher left some turn unanswered.
        hint: The hint of the (first) prompt, shown or too long to be shown.
        without_prompt: Parents whose next prompt could not be built.
        is_whole: Whether the round has all G responses, or all that each parent should have.
    """

    request: Sample
    turns: tuple[Turn, ...] = ()
    hint_status: HintStatus = "none"
    hint: str = ""
    is_whole: bool = True
    without_prompt: tuple[Place, ...] = ()

    @property
    def level(self) -> int:
        """The hint level that was asked for."""
        return self.request.prompt.level

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Verdicts of the turns that have one, in order; that of a failed verifier is one too."""
        return tuple(turn.verdict for turn in self.turns if turn.verdict is not None)

    @property
    def accuracies_G(self) -> tuple[float, ...]:
        """Accuracy of each turn with a verdict, in order; 0 where the verifier failed."""
        return tuple(verdict.score for verdict in self.verdicts)

    @property
    def num_right(self) -> int:
        """Turns that are right; one on which the verifier failed is not."""
        return sum(accuracy > 0 for accuracy in self.accuracies_G)

    @property
    def num_ungraded(self) -> int:
        """Turns on which the verifier failed."""
        return sum(verdict.is_ungraded for verdict in self.verdicts)

    @property
    def num_tokens(self) -> int:
        """Length of all sampled responses."""
        return sum(
            len(turn.response.token_ids_T) for turn in self.turns if not turn.response.is_given
        )

    @property
    def is_solved(self) -> bool:
        """True when at least one response is right."""
        return self.num_right > 0

    @property
    def is_inconclusive(self) -> bool:
        """True when nothing was right but the verifier failed on some response."""
        return not self.is_solved and self.num_ungraded > 0


@dataclass(frozen=True, slots=True)
class Row:
    """One turn that trains, or that only the critic reads (``weight`` and ``kl_coef`` are 0).

    Attributes:
        place: The turn.
        reward: What it trains with.
        group: Rows with the same name share one baseline; each trains under its own prompt. A row
            alone in its group has no baseline: verl's GRPO trains it with its raw reward.
        kl_coef, weight, facts: As in ``CreditRow``; read where a method has credit of its own.
    """

    place: Place
    reward: float
    group: str = ""
    kl_coef: float = 0.0
    weight: float = 1.0
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Train:
    """The decision: the rows that are published, in this order.

    ``is_dropped``: none of them has a training signal.

    Raises:
        ValueError: If there are no rows: the prompt would end without a record.
    """

    rows: tuple[Row, ...]
    is_dropped: bool = False

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError("Train has no rows; give at least one, or dropped ones (is_dropped)")


# What a method answers: sample more, or train.
Decision = Sample | Train


def turn_at(rounds: Sequence[Round], place: Place) -> Turn:
    """Return the turn at a place."""
    return rounds[place.round].turns[place.turn]


def conversation_to(rounds: Sequence[Round], place: Place) -> tuple[Place, ...]:
    """Return the places of a conversation's turns from its first to ``place``."""
    parent = turn_at(rounds, place).parent
    return (*(conversation_to(rounds, parent) if parent else ()), place)


def places(rounds: Sequence[Round], index: int) -> tuple[Place, ...]:
    """Return the places of all turns of one round."""
    return tuple(Place(index, turn) for turn in range(len(rounds[index].turns)))
