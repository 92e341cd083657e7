"""Substitutes by class: made-up values without a model, and fills held to the class of their marker."""
