"""An n-gram model in the Transformer's place: seconds a condition, and a file that other recognisers read."""
