"""Step 1: corpora are read and cleaned. The file formats between the steps are here too."""
