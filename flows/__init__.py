"""Scheduling: Prefect's view of the graph. Reads the graph from DVC, never restates it.

The packages below; each imports only from those above it:

- ``checkout``: state of a run in its working folder: lock, overrides, private folders
- ``graph``: DVC's graph, parts of it, and the plan of a run
- ``erasure``: finding and removing a clone's data of one corpus
- ``stages``: the processes that run stages
- ``runs``: one run from its preparation to its record, with any scheduler
- ``cluster``: the commands of stages on the machines of a Ray cluster
- ``prefect_flow``: the flow that Prefect runs, and all other code for Prefect
"""
