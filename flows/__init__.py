"""When and where: the graph as Prefect sees it. Reads the graph from DVC, never restates it."""
