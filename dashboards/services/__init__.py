"""The servers that show an experiment, on this machine's loopback interface: Prefect and MLflow."""
