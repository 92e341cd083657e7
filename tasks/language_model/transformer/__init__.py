"""The word-level Transformer: model, folder, batches, training and scoring (paper 4.2)."""
