"""Step 1: text comes in. The file formats that pass between the steps are here too."""
