"""Reading DVC's graph, and the plan of a run."""
