"""The steps of the paper, one package per step. Independent of Prefect and DVC."""
