"""A causal language model of Hugging Face, used instead of the Transformer and adapted with LoRA or in full."""
