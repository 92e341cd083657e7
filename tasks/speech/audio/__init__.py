"""Recordings come in: manifests, audio files and published corpora of read speech."""
