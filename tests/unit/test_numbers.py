"""``nan`` and ``inf`` are no numbers of a file."""

import pytest

from recipe.run.typed import read_json


def test_json_that_holds_it_is_no_json():
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        for text in (word, f"[{word}]", f'{{"a": {{"b": {word}}}}}'):
            with pytest.raises(ValueError, match="is not a finite number"):
                read_json(text)
    assert read_json(b'{"a": [1, -2.5e3, "NaN", null]}') == {"a": [1, -2500.0, "NaN", None]}
