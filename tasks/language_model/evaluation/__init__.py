"""Step 5: the perplexity of a model of any kind, its protocol and its confidence interval (docs/perplexity.md)."""
