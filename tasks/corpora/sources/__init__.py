"""Where text comes from: files of yours, published corpora, and text inside pip packages."""
