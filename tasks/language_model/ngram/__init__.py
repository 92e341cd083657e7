"""An n-gram model, used instead of the Transformer: it trains in seconds, and other recognisers read its ARPA files."""
