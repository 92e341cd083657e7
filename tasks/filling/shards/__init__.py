"""Filling a large corpus: shards that survive a kill, several devices, batches that fit."""
