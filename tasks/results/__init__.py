"""Steps 6 and 7: measurements of the stages, the table of all cells, and MLflow as a view of it."""
