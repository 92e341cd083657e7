"""Training of taggers on labelled text: a conditional random field, a word classifier, and a spaCy pipeline."""
