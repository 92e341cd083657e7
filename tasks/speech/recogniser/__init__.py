"""The recogniser: features, units, an Emformer transducer, its training, its folder, and speech as it encodes it."""
