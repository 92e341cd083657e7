"""The flow that Prefect sees, and everything else that belongs to Prefect."""
