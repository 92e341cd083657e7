"""What a summary says of the claims of the paper, and beyond them."""
