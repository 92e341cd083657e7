"""``params.yaml`` as a whole: its sections, and the checks that they fit together."""
