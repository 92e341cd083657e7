"""Work on a text in shards: kept as they are finished, and computed by several processes or machines."""
