"""Substitutes by class: made-up values without a model, and the check that fills have the class of their marker."""
