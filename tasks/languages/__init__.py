"""Languages of a mixed-language text: the language of each word, and how the text mixes them."""
