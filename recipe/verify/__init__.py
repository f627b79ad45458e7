"""One verifier for training reward and evaluation.

``grading`` grades one item of any kind, ``maths.grade`` one of mathematics; ``pool.workers`` grades
in processes that can be killed. This module imports none of them: the sandbox starts two processes
per program, and each would pay for modules that it does not use.
"""
