"""Named-entity models of several libraries, with one interface, and the technique that masks their entities."""
