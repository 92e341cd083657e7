"""The recogniser: features, units, an Emformer transducer, its training, its folder, and encoded speech."""
