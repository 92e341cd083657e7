"""Cells of an experiment, their keys, and the reports of stages."""
