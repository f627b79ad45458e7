"""The driver inside Ray: builds the trainer of the chosen mode and runs it."""

from __future__ import annotations

import contextlib
import json
import os
import traceback
from typing import Any

import ray
from hydra.utils import get_object
from omegaconf import DictConfig

from recipe.run.environment import describe_machine
from recipe.run.errors import HintError
from recipe.run.run_folder import RunFolder
from recipe.run.watchdog import NO_ANSWER, Watchdog, queue_controller, sentence_of, write_fatal
from recipe.run.whole_file import claimed, write_whole

# The recipe's parts, by name: importing them takes seconds, which the command need not wait.
TRAINERS = "recipe.hint.hint_trainer.TRAINERS"
REGISTER_SERVERS = "recipe.hint.adapter.rollout_server.register"
QUEUE = "recipe.hint.adapter.store"
# If a run's command is killed, its driver ends some seconds later.
_PREDECESSOR_S = 60.0


class HintTaskRunner:
    """verl's TaskRunnerV1 with the recipe's trainer, manager and rollout servers.

    Not a subclass: all that the parent does is choose classes, and these differ here.
    """

    def run(self, config: DictConfig) -> dict[str, Any]:
        """Train (or only validate) and return where it ended."""
        folder = RunFolder(config.hint.run_dir)
        folder.create()
        # Before verl's imports: the launcher waits for its heartbeat.
        watchdog = Watchdog(folder.logs, config.hint.watchdog)
        try:
            with claimed(folder.root / ".driver.lock", wait_s=_PREDECESSOR_S):
                return self._run(config, folder, watchdog)
        except BaseException as error:
            with contextlib.suppress(OSError):  # a full disk; the launcher has Ray's error too
                write_fatal(folder.logs, sentence_of(error, folder.root), traceback.format_exc())
            raise
        finally:
            watchdog.stop()

    def _run(self, config: DictConfig, folder: RunFolder, watchdog: Watchdog) -> dict[str, Any]:
        os.environ["TENSORBOARD_DIR"] = str(folder.root / "tensorboard")
        os.environ.setdefault("WANDB_DIR", str(folder.root))
        from verl.utils.import_utils import load_class_from_fqn

        prepare_verl()
        queue = get_object(QUEUE)
        _check_queue_is_free()
        with watchdog.phase("TransferQueue", "queue_s", fault=NO_ANSWER):
            queue.open_queue(config.transfer_queue)
        is_done = False
        trainer = None
        try:
            folder.say("starting the trainer and the vLLM replicas ...")
            trainer = get_object(TRAINERS)[config.trainer.v1.trainer_mode](config=config)
            trainer.watchdog = watchdog
            trainer.init()
            with watchdog.phase("the agent-loop workers", "start_s", fault=NO_ANSWER):
                name = config.actor_rollout_ref.rollout.agent.agent_loop_manager_class
                manager = load_class_from_fqn(name, "AgentLoopManager").create(
                    config=config,
                    llm_client=trainer.get_llm_client(),
                    teacher_client=trainer.get_teacher_client(),
                    reward_loop_worker_handles=trainer.get_reward_handles(),
                )
                # verl does not wait for them; from here on they have to answer soon.
                ray.get([worker.ping.remote() for worker in manager.agent_loop_workers])
                write_whole(folder.root / "machine.json", json.dumps(describe_machine(), indent=1))
            folder.say("ready")
            trainer.fit(manager)
            is_done = True
            return {"global_steps": int(trainer.global_steps)}
        finally:
            try:
                if trainer is not None and trainer.logger is not None:
                    trainer.logger.finish(exit_code=0 if is_done else 1)
            finally:
                with watchdog.phase("TransferQueue", "queue_s", fault=NO_ANSWER):
                    queue.close_queue()


def _check_queue_is_free() -> None:
    """Refuse a cluster with the queue of another run; there is one name for it in a cluster.

    TransferQueue would join that of a run at work, mix both runs' rows, and end it with the first.
    """
    with contextlib.suppress(ValueError):
        queue_controller()
        raise HintError(
            "another training runs in this Ray cluster, and TransferQueue serves one in a cluster; "
            "wait for its end, or give this run a cluster of its own (leave RAY_ADDRESS out)"
        )


def prepare_verl() -> None:
    """Set up verl's logging, check its platform, and register the project's rollout servers."""
    from verl.plugin.platform import platform_manager
    from verl.utils.logging_utils import configure_verl_logging

    configure_verl_logging()
    wanted, found = os.environ.get("VERL_PLATFORM"), platform_manager.get_platform().device_name
    if wanted == "cpu" != found:  # verl would fall back to another one with a warning
        raise HintError(f"verl runs on platform {found!r}, expected {wanted!r}")
    get_object(REGISTER_SERVERS)()
