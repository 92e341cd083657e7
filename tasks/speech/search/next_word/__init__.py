"""Language models that are asked for the next word of many histories at once, word after word."""
