"""Speech: a transducer, its fusion with language models, and word error rates (paper 3.3, 4.2)."""
