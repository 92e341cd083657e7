"""The loss of a transducer: minus the log-probability of a text, summed over all its alignments to the frames."""
