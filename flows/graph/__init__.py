"""DVC's graph as it is read, and the plan of what a run has to do."""
