"""Cells as runs of MLflow: publishing them, following them while they train, the registered models."""
