"""A causal language model of Hugging Face's in the Transformer's place, adapted with LoRA or in full."""
