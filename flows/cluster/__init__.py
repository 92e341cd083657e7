"""Commands of stages on the machines of a Ray cluster; without ``resources.cluster`` nothing of it is imported."""
