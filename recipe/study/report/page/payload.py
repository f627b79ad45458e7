"""The page's data in the room that one file has: visits without texts, and samples with them."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from recipe.study.report.page.folder import PageRun
from recipe.study.report.page.visits import TEXT_CHARS, Visit, stop_reason, text

# Texts of a sample, and characters of a text: as they are, and where not all samples fit.
_TEXT_LIMITS = ((64, TEXT_CHARS), (3, 900))
_VISIT_SHARE = 0.5  # of the room; samples get what visits leave


def pack_json(value: Any) -> str:
    """Return a value as base64 of zlib-compressed JSON; no character of it can end a script."""
    return pack_text(json.dumps(value, separators=(",", ":"), allow_nan=False))


def pack_text(text: str) -> str:
    """Return a text as base64 of its zlib-compressed UTF-8."""
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")


def compact_runs(runs: Sequence[PageRun], room_bytes: int) -> dict[str, Any]:
    """Return the runs' visits and samples, as many as find room when packed.

    All visits of a problem are kept or none, problems with samples first; of the samples, odd
    ones first and then one step after the other. ``num_visits`` and ``num_samples`` tell how many
    there are.

    Args:
        runs: What was read.
        room_bytes: Characters of base64 that the result may have.
    """
    rooms = [room_bytes * 3 // 4 // max(1, len(runs))] * len(runs)
    found = []
    for run, room in zip(runs, rooms, strict=True):
        visits, size = _fitting_visits(run, int(room * _VISIT_SHARE))
        samples = _fitting_samples(run.samples, room - size)
        found.append(
            {
                "name": run.name,
                "num_visits": len(run.visits),
                "num_samples": len(run.samples),
                "visits": visits,
                "samples": samples,
            }
        )
    return {"runs": found}


def _fitting_visits(run: PageRun, room: int) -> tuple[list[Any], int]:
    """Return compact visits of as many problems as find room, and their size."""
    max_level = run.setting("hint.max_level")
    level = max_level if isinstance(max_level, int) else None
    with_samples = {each["problem_id"] for each in run.samples}
    rows = [_visit(visit, level) for visit in run.visits]
    names = {row["problem"] for row in rows}
    order = sorted(names, key=lambda name: (name not in with_samples, _draw(name)))
    kept = len(order)
    while True:
        names = set(order[:kept])
        chosen = [row for row in rows if row["problem"] in names]
        size = len(zlib.compress(json.dumps(chosen, separators=(",", ":")).encode(), 6))
        if size <= room or not kept:
            return chosen, size
        kept = min(kept - 1, int(kept * room / size * 0.97))


def _visit(visit: Visit, max_level: int | None) -> dict[str, Any]:
    """Return what the page's script shows of a visit."""
    groups = visit.groups or [""] * len(visit.rows)
    return {
        "step": visit.step,
        "problem": visit.problem_id,
        "stop": stop_reason(visit, max_level),
        "rounds": [asdict(each) for each in visit.rounds],
        "trained": [
            {"round": at, "turn": turn, "reward": reward, "group": group}
            for (at, turn), reward, group in zip(visit.rows, visit.rewards, groups, strict=True)
        ],
        "reasons": list(visit.reasons.items()),
        "flags": visit.flags,
        "hintTokens": visit.hint_tokens,
        "hintCalls": visit.hint_calls,
        "signal": visit.has_signal,
        "level": visit.level,
    }


def _fitting_samples(samples: Sequence[dict[str, Any]], room: int) -> list[Any]:
    """Return samples in the order of the file; the least odd ones give way when there is no room.

    Where not all fit whole, each is shortened, so that more of them do.
    """
    kept: list[tuple[int, dict[str, Any]]] = []
    for limits in _TEXT_LIMITS:
        packer, size, kept = zlib.compressobj(9), 0, []
        for at in _by_oddness(samples):
            row = _shortened(samples[at], *limits)
            raw = json.dumps(row, separators=(",", ":")).encode()
            size += len(packer.compress(raw)) + len(packer.flush(zlib.Z_SYNC_FLUSH))
            if size > room:
                break
            kept.append((at, row))
        if len(kept) == len(samples):
            break
    return [row for _, row in sorted(kept, key=lambda pair: pair[0])]


def _shortened(sample: dict[str, Any], max_texts: int, max_chars: int) -> dict[str, Any]:
    """Return a sample with so many responses' texts at most, each of so many characters."""
    responses = []
    for each in sample["responses"]:
        with_text = sum("text" in other for other in responses) < max_texts and "text" in each
        rest = {name: value for name, value in each.items() if name != "text"}
        responses.append(rest | ({"text": text(each["text"], max_chars)} if with_text else {}))
    return sample | {"responses": responses, "problem": text(sample["problem"], max_chars)}


def _by_oddness(samples: Sequence[dict[str, Any]]) -> list[int]:
    """Return places: those with more than ``random`` first, each kind in any order."""
    keys = ((each["why"] == ["random"], _draw(str(at)), at) for at, each in enumerate(samples))
    return [at for _, _, at in sorted(keys)]


def _draw(name: str) -> str:
    """Return a text that sorts names in a fixed, arbitrary order."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
