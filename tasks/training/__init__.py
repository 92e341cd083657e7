"""Training of language models, fillers, taggers and the recogniser with Lightning."""
