"""Several clones at work on one experiment."""
