"""The flow that Prefect runs, and all other code for Prefect."""
