"""Speech that is recognised while it is spoken: partial results, how they change, and how late they are."""
