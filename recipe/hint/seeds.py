"""Seeds from coordinates: the same place in a run draws the same numbers, whatever came before."""

import hashlib


def seed_at(*coordinates: object) -> int:
    """Return a 31-bit seed from printable coordinates, such as (seed, step, problem id, level).

    Not ``hash()``: that one is salted per process for strings.
    """
    text = "\x1f".join(map(str, coordinates))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
