"""Adaptation with differential privacy (DP-SGD, Abadi et al. 2016): accountant, clipped gradients, training loop."""
