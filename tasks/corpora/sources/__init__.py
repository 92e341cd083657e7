"""Sources of text: users' files, published corpora, and text inside pip packages."""
