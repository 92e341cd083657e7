"""Where a number comes from, and how that state is brought back."""
