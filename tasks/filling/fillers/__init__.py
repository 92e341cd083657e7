"""Fillers before they fill: a head trained on a pretrained body, and fine-tuning on masked text."""
