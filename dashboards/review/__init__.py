"""The review of a corpus by a person, on a page in the browser."""
