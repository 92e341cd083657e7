"""Training of language models, fillers, taggers and the recogniser with Lightning.

``loop`` trains the word Transformer and the recogniser, with checkpoints and on several devices. ``steps`` trains
models of Hugging Face in one process. ``stage`` is the frame of a command that trains.
"""
