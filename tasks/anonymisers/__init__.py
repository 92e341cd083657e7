"""Programs that anonymise documents, compared with each other."""
