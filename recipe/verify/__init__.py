"""One verifier for training reward and evaluation.

``grading.grade(Item(response, answer))`` returns a ``Verdict``. It may run for ever on hostile
mathematics; ``pool.VerifierPool`` grades in processes that can be killed.
"""
