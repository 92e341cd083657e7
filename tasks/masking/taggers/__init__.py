"""Named-entity models of several libraries behind one interface, and the technique that masks what they tag."""
