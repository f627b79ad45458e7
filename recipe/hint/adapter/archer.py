"""ArCHer's critic within a step: fill the replay buffer, update, return Q and V."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter.critic import utterance_loss
from recipe.hint.credit.archer import UtteranceCriticSettings, q_targets
from recipe.hint.credit.replay import ReplayBuffer, Transition
from recipe.hint.credit.rows import CreditRow
from recipe.hint.credit.turn_level import LAST, next_rows
from recipe.hint.schema import seed_at

HEADS = ("q1", "q2", "v1", "v2")
AT_END = ("target_lag", "replay")  # numbers of the last update; the others are means
_PLAIN = 0.5  # the expectile that is the mean


class UtteranceLearner:
    """The driver's side of the critic: replay buffer, updates, and Q and V of a step's rows.

    Args:
        settings: How it learns.
        workers: verl's worker group of ``UtteranceCriticWorker``.
        seed: Of the draws from the replay buffer.
        num_processes: Batches are multiples of it.
    """

    def __init__(
        self, settings: UtteranceCriticSettings, workers: Any, *, seed: int, num_processes: int
    ) -> None:
        self.replay = ReplayBuffer(settings.capacity)
        self._settings = settings
        self._workers = workers
        self._seed = seed
        self._num_processes = num_processes
        self._step, self._calls = -1, 0
        workers.set_loss_fn(partial(utterance_loss, expectile=settings.expectile or _PLAIN))

    def learn(self, fresh: Sequence[Transition], step: int) -> dict[str, float]:
        """Keep the transitions of a step, then update Q, V and the slow target.

        Args:
            fresh: Those of this step, from the present policy.
            step: Training step, a coordinate of the draws.

        Returns:
            Means over the updates: ``q_loss``, ``v_loss``, ``grad_norm``, ``td_error`` (mean of
            |Q target - Q of the slow target|), and at the end ``target_lag`` (distance of the
            slow target, relative to the weights) and ``replay`` (transitions kept).
        """
        self.replay.add(fresh)
        by_update: list[dict[str, float]] = []
        lag, size = 0.0, 1.0
        # A step of several shares learns from each of them: no draw of it is repeated.
        self._calls = self._calls + 1 if step == self._step else 0
        self._step, first = step, self._calls * self._settings.updates
        for update in range(first, first + self._settings.updates):
            drawn = self.replay.draw(
                self._settings.batch_size, seed_at(self._seed, "replay", step, update)
            )
            by_update.append(self._update(drawn, fresh, seed_at(self._seed, "fresh", step, update)))
            of_processes = np.array(self._workers.soft_update(self._settings.tau))  # (processes, 2)
            lag, size = of_processes.sum(axis=0)
        means = {name: float(np.mean([each[name] for each in by_update])) for name in by_update[0]}
        return means | {"target_lag": float((lag / size) ** 0.5), "replay": float(len(self.replay))}

    def heads_of(self, transitions: Sequence[Transition]) -> np.ndarray:
        """Return Q1, Q2, V1 and V2 of each, shape (N, 4)."""
        return self._evaluate(self._workers.infer_batch, transitions)

    def _update(
        self, drawn: Sequence[Transition], fresh: Sequence[Transition], seed: int
    ) -> dict[str, float]:
        """Regress Q on what was drawn; V on this step's utterances, or on the drawn ones too."""
        settings = self._settings
        valued = list(drawn)
        if settings.expectile is None:
            chosen = np.random.default_rng(seed).integers(len(fresh), size=len(drawn))
            valued = [fresh[index] for index in chosen]
        ahead = [each for each in drawn if not each.is_done]
        next_states = [_state_alone(each) for each in ahead]
        # One pass of the slow target: Q of what V learns from, Q of what was drawn, V ahead.
        asked = [*valued, *drawn, *next_states]
        slow = self._evaluate(self._workers.infer_target, asked)  # (asked, 4)
        count = len(drawn)
        slow_q_N2, next_values = slow[count : 2 * count, :2], slow[2 * count :, 2:]
        is_done_N = np.array([each.is_done for each in drawn])
        next_values_N2 = np.zeros((count, 2))
        next_values_N2[~is_done_N] = next_values
        rewards_N = np.array([each.reward for each in drawn])
        targets_N2 = q_targets(rewards_N, next_values_N2, is_done_N, settings.gamma)
        rows = self._filled([*drawn, *valued])
        of_q, of_v = np.full((2, len(rows), 2), np.nan)  # NaN: a row has no such target
        of_q[:count] = targets_N2
        of_v[count : 2 * count] = slow[:count, :2]
        rows["q_targets"], rows["v_targets"] = _tensor(of_q), _tensor(of_v)
        tu.assign_non_tensor(
            rows,
            temperature=1.0,
            global_batch_size=count,
            mini_batch_size=len(rows),
            epochs=1,
            seed=0,
            dataloader_kwargs={"shuffle": False},
        )
        metrics = tu.get(self._workers.train_mini_batch(rows).get(), "metrics")
        means = {name: float(np.mean(metrics[name])) for name in ("q_loss", "v_loss", "grad_norm")}
        return means | {"td_error": float(np.abs(targets_N2 - slow_q_N2).mean())}

    def _evaluate(self, ask: Any, transitions: Sequence[Transition]) -> np.ndarray:
        rows = self._filled(transitions)
        tu.assign_non_tensor(rows, temperature=1.0, compute_loss=False)
        found_N4 = ask(rows).get()["utterance"].to_padded_tensor(0.0)
        if not found_N4.isfinite().all():  # a target that is NaN would be taken for none
            raise ValueError(
                "the critic's Q or V of an utterance is not finite; look at critic/td_error and "
                "critic/grad_norm, and give a lower critic.optim.lr"
            )
        return found_N4[: len(transitions)].double().numpy()

    def _filled(self, transitions: Sequence[Transition]) -> TensorDict:
        """Return the rows, filled up with the first to a multiple of the processes."""
        missing = -len(transitions) % self._num_processes
        return _batch([*transitions, *[transitions[0]] * missing])


def transitions_of(
    rows: Sequence[CreditRow],
    prompts: Sequence[np.ndarray],
    responses: Sequence[np.ndarray],
    step: int,
) -> list[Transition]:
    """Return the utterances of a step, in the order of its rows.

    Args:
        rows: Of one batch, all turns of each conversation among them.
        prompts: Tokens of each row's conversation before its turn.
        responses: Tokens of each turn.
        step: Training step.
    """
    nothing = np.zeros(0, np.int32)
    # Copied: they stay for many steps, and a view would keep the columns of the whole step.
    prompts, responses = (
        [ids_T.astype(np.int32) for ids_T in each] for each in (prompts, responses)
    )
    return [
        Transition(
            prompts[place],
            responses[place],
            row.reward,
            nothing if after == LAST else prompts[after],
            step,
        )
        for place, (row, after) in enumerate(zip(rows, next_rows(rows), strict=True))
    ]


def _state_alone(transition: Transition) -> Transition:
    """Return the next state with an utterance of one token, which V does not see."""
    state_T = transition.next_state_T
    return Transition(state_T, state_T[:1], 0.0, state_T[:0], transition.step)


def _batch(transitions: Sequence[Transition]) -> TensorDict:
    """Return rows as verl's workers take them."""
    states = [_tokens(each.state_T) for each in transitions]
    actions = [_tokens(each.action_T) for each in transitions]
    both = [torch.cat(pair) for pair in zip(states, actions, strict=True)]
    columns = {
        "prompts": states,
        "responses": actions,
        "input_ids": both,
        "position_ids": [torch.arange(len(each)) for each in both],
        "response_mask": [torch.ones_like(each) for each in actions],
        "loss_mask": [torch.ones_like(each) for each in actions],
    }
    return TensorDict(
        {
            name: torch.nested.as_nested_tensor(each, layout=torch.jagged)
            for name, each in columns.items()
        },
        batch_size=len(transitions),
    )


def _tokens(token_ids_T: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(token_ids_T, dtype=np.int64))


def _tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(values).float()
