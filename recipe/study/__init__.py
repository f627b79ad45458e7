"""Evaluate, compare and publish: what reads runs after, or beside, their training."""
