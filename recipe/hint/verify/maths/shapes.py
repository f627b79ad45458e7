"""Parts of trees that a comparison looks at: names, words, units, infinity, relations."""

from __future__ import annotations

from recipe.hint.verify.maths.tree import Node
from recipe.hint.verify.maths.words import Suffix


def names_of(node: Node) -> list[str]:
    """The names of ``(x, y)``; none for another node."""
    return [str(item.value) for item in node.items] if node.kind == "tuple" else []


def is_sorted(names: list[str]) -> bool:
    """Whether names come as one would list them: r, theta and x, y."""
    plain = [name.strip("\\") for name in names]
    return plain == sorted(plain)


def folded(node: Node) -> str:
    """A word without its case; one letter keeps it."""
    if node.kind == "word":
        text = node.value.strip(" .!'\"")
        return text if len(text) == 1 else text.casefold().replace("-", " ")
    if node.kind == "sym" and len(node.value) == 1:
        return node.value
    if node.kind == "mul":  # AB, ABC: points, or letters of a word
        parts = [folded(item) for item in node.items]
        return "".join(parts).casefold() if all(parts) else ""
    return node.value if node.kind == "const" and node.value in ("e", "i") else ""


def parted(node: Node) -> tuple[Node, Suffix]:
    """A value and what stands behind it."""
    return (node.items[0], node.value) if node.kind == "quantity" else (node, Suffix())


def is_infinite(node: Node) -> bool:
    """Whether it is plus or minus infinity."""
    return infinity_sign(node) != 0


def infinity_sign(node: Node) -> int:
    """1 and -1 for the infinities, else 0."""
    if node.kind == "neg":
        return -infinity_sign(node.items[0])
    return int(node.kind == "const" and node.value == "inf")


def pointed(relation: Node) -> tuple[tuple[Node, Node], str]:
    r"""The two sides and ``=``, ``\ne``, ``>`` or ``\ge``."""
    (left, right), [kind] = relation.items, relation.value
    if kind in ("<", r"\le"):
        return (right, left), {"<": ">", r"\le": r"\ge"}[kind]
    return (left, right), kind
