"""Matrices: a factor multiplied in, a vector written as a bracket."""

from __future__ import annotations

from recipe.hint.verify.maths.tree import STRUCTURES, Node, num


def multiplied(node: Node) -> Node:
    """A number times a matrix or vector, multiplied out."""
    if node.kind in ("mul", "div") and len(node.items) == 2:
        left, right = node.items
        inner = multiplied(right if node.kind == "mul" else left)
        factor = left if node.kind == "mul" else right
        if inner.kind == "matrix" and factor.kind not in STRUCTURES:
            kind = node.kind
            rows = tuple(
                Node("tuple", tuple(
                    Node(kind, (factor, cell) if kind == "mul" else (cell, factor))
                    for cell in row.items
                ), row.value)
                for row in inner.items
            )  # fmt: skip
            return Node("matrix", rows)
    if node.kind == "neg":
        return multiplied(Node("mul", (num(-1), node.items[0])))
    return node


def flat(node: Node) -> Node | None:
    """A bracket, or a matrix of one row or one column as a bracket; else ``None``."""
    if node.kind == "tuple":
        is_interval = node.value == "[]" and len(node.items) == 2
        return node if node.value in ("()", "[]") and not is_interval else None
    if node.kind == "list":
        return Node("tuple", node.items, "()")
    if node.kind != "matrix":
        return None
    if len(node.items) == 1:
        return Node("tuple", node.items[0].items, "()")
    if all(len(row.items) == 1 for row in node.items):
        return Node("tuple", tuple(row.items[0] for row in node.items), "()")
    return None
