"""Results on the claims of the paper, and on further claims."""
