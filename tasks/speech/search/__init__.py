"""Beam search for the transducer, batched over utterances and hypotheses."""
