"""Finding and removing a clone's data of one corpus."""
