"""Processes that grade, each of which can be killed."""
