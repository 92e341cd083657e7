"""Preparation of fillers: training of a head on a pretrained body, and fine-tuning on masked text."""
