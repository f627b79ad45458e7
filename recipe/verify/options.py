"""What may be chosen about grading; each option with its one default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from recipe.verify.schema import AnswerFormat

# What holds a program: "full" is Landlock and seccomp, "partial" seccomp alone, "none" limits of
# time and memory alone.
Isolation = Literal["full", "partial", "none"]


@dataclass(frozen=True)
class GradeOptions:
    """How items are graded; travels to the worker processes as JSON.

    Attributes:
        answer_format: Where the answer of a maths or choice response is.
        wall_factor: How many times its processor time a grade may take on the wall, waiting or on a
            busy machine.
        program_wall_s: Longest time for one program and its asserts, in seconds: the backstop for
            what waits without computing. Several times ``program_cpu_s``, so that a busy machine
            changes no verdict.
        program_cpu_s: Longest processor time of the program, and of its asserts, in whole
            seconds: the limit that decides.
        program_memory_mib: Address space of the program; Python itself needs 64.
        program_isolation: The least protection a program may run under; where the machine
            cannot give it, every program's verdict is ``error``.
        worker_memory_mib: Memory that one grade may take, beyond what its process starts with; 0
            for no limit.
        function_path: File of a user's own reward function, which then grades every item that has
            a ``row``; empty for none. As verl's ``custom_reward_function.path``.
        function_name: Its name there.
        function_kwargs: Given to it with every call.
    """

    answer_format: AnswerFormat = "auto"
    wall_factor: float = 6.0
    program_wall_s: float = 40.0
    program_cpu_s: int = 8
    program_memory_mib: int = 512
    program_isolation: Isolation = "partial"
    worker_memory_mib: int = 1024
    function_path: str = ""
    function_name: str = "compute_score"
    function_kwargs: Mapping[str, Any] = field(default_factory=dict)
