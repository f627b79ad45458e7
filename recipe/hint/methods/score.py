"""SCoRe: learn in two stages to revise a first attempt."""

from recipe.hint.methods.dialogue import Dialogue, SolverSettings


class Score(Dialogue):
    """Answer, then revise: the first turn earns its accuracy, the last its change.

    Credit stays in its turn. Source: Kumar et al. 2024, arXiv:2409.12917. Deviations:
    docs/lab/deviations.md#score.
    """

    settings_cls = SolverSettings
    settings_node = SolverSettings.node
