"""The servers to look at an experiment with, on this machine's loopback interface: Prefect, MLflow and the app."""
