"""What the trainings of the language model and of the recogniser share: steps, checkpoints, several devices, the curve.

``resumable_training`` is the loop as Lightning sees it, ``fitting`` runs it, and ``stage`` is the frame of a command.
A model's own package holds its loss, its batches and its validation.
"""
