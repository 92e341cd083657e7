"""The trainings of the language model and of the recogniser share their steps, checkpoints, devices and curve.

``loop`` is the training by Lightning, and ``stage`` is the frame of a command. A model's own package has its loss, its
batches and its validation.
"""
