"""verl's data set, for files of every layout of docs/data.md."""

from __future__ import annotations

from typing import Any

from verl.utils.dataset.rl_dataset import RLHFDataset

from recipe.problems.columns import RESERVED


class RowDataset(RLHFDataset):
    """Rows with the columns that verl expects, and without those that its batches use themselves.

    A prompt that is a text becomes the user's turn.
    """

    def maybe_filter_out_long_prompts(self, dataframe: Any = None) -> Any:
        """Complete the columns, then drop over-long prompts as verl does."""
        key, names = self.prompt_key, dataframe.column_names

        def put(name: str, values: list[Any]) -> Any:
            others = dataframe.remove_columns([name] if name in names else [])
            return others.add_column(name, values)

        if key not in names and "raw_prompt" in names:
            dataframe = dataframe.rename_column("raw_prompt", key)
            names = dataframe.column_names
        dataframe = dataframe.remove_columns(sorted(RESERVED & set(names)))
        if getattr(dataframe.features[key], "dtype", "") in ("string", "large_string"):
            dataframe = put(key, [[{"role": "user", "content": text}] for text in dataframe[key]])
        known = dataframe["data_source"] if "data_source" in names else [None] * len(dataframe)
        if None in known:
            dataframe = put("data_source", [each or "unknown" for each in known])
        if "reward_model" not in names:
            truths = [{"ground_truth": each} for each in dataframe["answer"]]
            dataframe = put("reward_model", truths)
        return super().maybe_filter_out_long_prompts(dataframe)
