"""Training of the Transformer: pretraining and adaptation, on several devices, with checkpoints (paper 4.2)."""
