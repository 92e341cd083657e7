"""``params.yaml`` as a whole: its sections, and what is wrong where they do not fit together."""
