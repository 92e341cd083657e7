"""Where a worker of Prefect finds the project: the pull step of ``prefect.yaml``.

Without a pull step Prefect 3.8 takes the working folder for the flow's code and copies all of it into a temporary
folder: of a container that starts in the clone the private text too, of one that starts in ``/`` the whole file system.
"""

import os

from flows.graph.graph import project_folder
from tasks.errors import ParameterError

FOLDER_VARIABLE = "PALIMPSEST_FOLDER"
"""Environment variable of a worker, or of the container that it starts: the project's folder."""


def enter_worker_folder() -> dict[str, str]:
    """The folder that a flow run works in, for Prefect; nothing is fetched.

    Raises ``ParameterError`` where the variable is not set, ``StageError`` where it names a folder outside a project.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        raise ParameterError(
            f"{FOLDER_VARIABLE} is not set, so this worker has no project to work in; set it to the folder of its "
            "clone, in the worker's environment or in the job variables of its pool"
        )
    return {"directory": str(project_folder(folder).resolve())}
