"""Training on several devices: who takes part, how they agree, and what happens when one of them ends."""
