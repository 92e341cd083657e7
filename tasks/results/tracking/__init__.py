"""Cells as runs of MLflow: publishing them, logging them during training, the registered models."""
