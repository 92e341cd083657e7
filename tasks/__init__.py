"""What is done: one package per step of the paper. Knows nothing of Prefect or DVC."""
