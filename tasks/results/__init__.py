"""Steps 6 and 7: what each stage measured, the table of it all, and MLflow as a view of it."""
