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
from recipe.hint.credit.archer import (
    LAST,
    ReplayBuffer,
    Transition,
    UtteranceCriticSettings,
    next_rows,
    q_targets,
)
from recipe.hint.credit.base import CreditRow
from recipe.hint.schema import seed_at

HEADS = ("q1", "q2", "v1", "v2")
_MEAN = 0.5  # the expectile that is the mean


class UtteranceLearner:
    """The driver's side of the critic: replay buffer, updates, and Q and V of a step's rows.

    ``workers`` is verl's worker group of ``UtteranceCriticWorker``; ``seed`` is that of the draws
    from the replay buffer.
    """

    def __init__(self, settings: UtteranceCriticSettings, workers: Any, *, seed: int) -> None:
        self.replay = ReplayBuffer(settings.capacity)
        self._settings, self._workers, self._seed = settings, workers, seed
        workers.set_loss_fn(partial(utterance_loss, expectile=settings.expectile or _MEAN))

    def learn(self, fresh: Sequence[Transition], step: int) -> dict[str, float]:
        """Keep the transitions of a step, then update Q, V and the slow target.

        Returns:
            Means over the updates: ``q_loss``, ``v_loss``, ``grad_norm``, ``td_error`` (mean of
            |Q target - Q of the slow target|), and at the end ``target_lag`` (distance of the
            slow target, relative to the weights) and ``replay`` (transitions kept).
        """
        self.replay.add(fresh)
        by_update: list[dict[str, float]] = []
        lag, size = 0.0, 1.0
        for update in range(self._settings.updates):
            seeds = (seed_at(self._seed, what, step, update) for what in ("replay", "fresh"))
            drawn = self.replay.draw(self._settings.batch_size, next(seeds))
            by_update.append(self._update(drawn, fresh, next(seeds)))
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
        valued, count = drawn, len(drawn)
        if self._settings.expectile is None:
            chosen = np.random.default_rng(seed).integers(len(fresh), size=count)
            valued = [fresh[index] for index in chosen]
        is_done_N = np.array([each.is_done for each in drawn])
        # The next states, each with an utterance of one token, which V does not see.
        states = [each.next_state_T for each in drawn if not each.is_done]
        ahead = [Transition(state, state[:1], 0.0, state[:0]) for state in states]
        # One pass of the slow target: Q of what V learns from, Q of what was drawn, V ahead.
        slow = self._evaluate(self._workers.infer_target, [*valued, *drawn, *ahead])  # (asked, 4)
        next_values_N2 = np.zeros((count, 2))
        next_values_N2[~is_done_N] = slow[2 * count :, 2:]
        rewards_N = np.array([each.reward for each in drawn])
        targets_N2 = q_targets(rewards_N, next_values_N2, is_done_N, self._settings.gamma)
        rows = filled([*drawn, *valued], self._workers.world_size)
        of_q, of_v = torch.full((2, len(rows), 2), torch.nan)  # NaN: a row has no such target
        of_q[:count] = torch.from_numpy(targets_N2)
        of_v[count : 2 * count] = torch.from_numpy(slow[:count, :2])
        rows["q_targets"], rows["v_targets"] = of_q, of_v
        options = {"epochs": 1, "seed": 0, "dataloader_kwargs": {"shuffle": False}}
        tu.assign_non_tensor(
            rows, temperature=1.0, global_batch_size=count, mini_batch_size=len(rows), **options
        )
        metrics = tu.get(self._workers.train_mini_batch(rows).get(), "metrics")
        means = {name: float(np.mean(metrics[name])) for name in ("q_loss", "v_loss", "grad_norm")}
        td_error = np.abs(targets_N2 - slow[count : 2 * count, :2]).mean()
        return means | {"td_error": float(td_error)}

    def _evaluate(self, ask: Any, transitions: Sequence[Transition]) -> np.ndarray:
        rows = filled(transitions, self._workers.world_size)
        tu.assign_non_tensor(rows, temperature=1.0, compute_loss=False)
        found_N4 = ask(rows).get()["utterance"].to_padded_tensor(0.0)
        if not found_N4.isfinite().all():  # a target that is NaN would be taken for none
            raise ValueError(
                "the critic's Q or V of an utterance is not finite; look at critic/td_error and "
                "critic/grad_norm, and give a lower critic.optim.lr"
            )
        return found_N4[: len(transitions)].double().numpy()


def filled(transitions: Sequence[Transition], world_size: int) -> TensorDict:
    """Return rows for verl's workers, filled up with the first to a multiple of them."""
    each_T = [*transitions, *[transitions[0]] * (-len(transitions) % world_size)]
    states = [torch.from_numpy(each.state_T.astype(np.int64)) for each in each_T]
    actions = [torch.from_numpy(each.action_T.astype(np.int64)) for each in each_T]
    both = [torch.cat(pair) for pair in zip(states, actions, strict=True)]
    masks = [torch.ones_like(each) for each in actions]
    columns = {
        "prompts": states,
        "responses": actions,
        "input_ids": both,
        "position_ids": [torch.arange(len(each)) for each in both],
        "response_mask": masks,
        "loss_mask": masks,
    }
    nested = {
        name: torch.nested.as_nested_tensor(each, layout=torch.jagged)
        for name, each in columns.items()
    }
    return TensorDict(nested, batch_size=len(each_T))


def transitions_of(
    rows: Sequence[CreditRow], prompts: Sequence[np.ndarray], responses: Sequence[np.ndarray]
) -> list[Transition]:
    """Return the utterances of a step, in the order of its rows.

    ``rows`` are of one batch, all turns of each conversation among them; ``prompts`` the tokens of
    each row's conversation before its turn, ``responses`` those of the turn.
    """
    # Copied: they stay for many steps, and a view would keep the columns of the whole step.
    states, actions = ([ids_T.astype(np.int32) for ids_T in each] for each in (prompts, responses))
    following = [
        np.zeros(0, np.int32) if after == LAST else states[after] for after in next_rows(rows)
    ]
    return [
        Transition(state_T, action_T, row.reward, after_T)
        for row, state_T, action_T, after_T in zip(rows, states, actions, following, strict=True)
    ]
