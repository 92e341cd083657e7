"""The servers to look at an experiment with, on this machine's loopback interface: Prefect and MLflow."""
