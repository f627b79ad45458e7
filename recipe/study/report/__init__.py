"""Figures and tables from the folders of finished runs."""
