"""What a number belongs to, which cells an experiment has, and what each stage says of itself."""
