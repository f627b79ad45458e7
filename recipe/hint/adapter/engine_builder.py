"""Engines on verl's own agent-loop worker: its tokenizer, its renderer, its client."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig
from verl.utils.tokenizer.continuous_token_wiring import create_continuous_token_builder
from verl.workers.rollout.utils import get_max_position_embeddings

from recipe.hint.adapter.chat_template import Renderer, refuses_system
from recipe.hint.adapter.engine import Grading, VllmEngine
from recipe.hint.adapter.group_client import GroupClient, Sampling
from recipe.hint.adapter.rewards import build_grader, overlong_of
from recipe.hint.settings import HintSettings
from recipe.run.environment import log_to_stderr


class EngineBuilder:
    """What the engines of one worker share: the client, the tokenizer and the verifier.

    Args:
        worker: verl's AgentLoopWorker, or one derived from it.
        settings: The ``hint:`` node.

    Attributes:
        grader: The verifier behind all engines.
    """

    def __init__(self, worker: Any, settings: HintSettings) -> None:
        log_to_stderr()
        rollout = worker.config.actor_rollout_ref.rollout
        self._rollout = rollout
        self._client = GroupClient(
            worker.llm_client,
            max_model_len=rollout.max_model_len
            or get_max_position_embeddings(worker.model_config.hf_config),
            timeout_s=settings.watchdog.rollout_s,
            is_seeded=settings.seeded_sampling,
        )
        options = dict(worker.config.data.get("apply_chat_template_kwargs", {}))
        template = create_continuous_token_builder(
            worker.tokenizer, hf_model_type=worker.hf_model_type, chat_template_kwargs=options
        )
        folds_system = refuses_system(worker.tokenizer, options)
        self._renderer = Renderer(
            worker.tokenizer, template, rollout.prompt_length, folds_system, options
        )
        self.grader = build_grader(settings.verify, worker.config)
        self._overlong = overlong_of(worker.config)

    def build(self, sampling: DictConfig, settings: HintSettings | None = None) -> VllmEngine:
        """Return an engine with the sampling settings of ``rollout`` or its ``val_kwargs``.

        Args:
            sampling: The node with ``n``, ``temperature``, ``top_p`` and ``top_k``.
            settings: Of the hint writer; without them the engine writes no hints.
        """
        hint_sampling = None
        if settings:
            hint_sampling = Sampling(
                n=1,
                max_tokens=settings.max_tokens,
                temperature=settings.temperature,
                top_p=settings.top_p,
            )
        return VllmEngine(
            self._client,
            self._renderer,
            grading=Grading(self.grader, self._overlong),
            response_sampling=Sampling(
                n=sampling.n,
                max_tokens=self._rollout.response_length,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
            ),
            hint_sampling=hint_sampling,
        )
