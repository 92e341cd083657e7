"""Steps 4 and 5: the word-level language model, its adaptation and its perplexity (paper 3.3, 4.2)."""
