"""Put a model that a stage has trained among those that are ready made."""

import sys

from tasks.ready_made import keep

keep(*sys.argv[1:])
