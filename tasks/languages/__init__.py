"""The languages of text in which several are mixed: which language each word has, and how they are mixed."""
