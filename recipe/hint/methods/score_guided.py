"""RL-guided SCoRe: a guide reads the first attempt and says what to look at again."""

from recipe.hint.methods.dialogue import Dialogue, GuideSettings


class ScoreGuided(Dialogue):
    """Answer, get feedback, refine; the guide earns what the refinement is worth.

    The guide is the policy in another role, under its own prompt and its own KL coefficient.
    Source: the hierarchical-reasoning repository's RL-guided variant of SCoRe
    (docs/methods/score-guided.md). Deviations: docs/lab/deviations.md#score-guided.
    """

    settings_cls = GuideSettings
    settings_node = GuideSettings.node
