"""The interactive app: pick, compare and follow the runs of an experiment. Numbers only, never text of a corpus."""
