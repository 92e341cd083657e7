"""The folder of an experiment, made from the installed package."""
