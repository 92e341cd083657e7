"""When and where: the graph as Prefect sees it. Reads the graph from DVC, never restates it.

Beside the commands there are rooms; each imports only from those above it:

- ``checkout``: what a run keeps in the folder that it works in: its lock, overrides, private folders
- ``graph``: DVC's graph as it is read, and the plan of what a run has to do
- ``erasure``: what a clone has of one corpus, and how it is removed
- ``stages``: the processes that carry stages out, and what DVC does differently in them
- ``runs``: one run from its preparation to its record, whoever schedules its stages
- ``cluster``: the commands of stages on the machines of a Ray cluster
- ``prefect_flow``: the flow that Prefect sees, and everything else that belongs to Prefect
"""
