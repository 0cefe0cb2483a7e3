"""Jobs in forked processes."""

import os
import traceback
from collections.abc import Callable


def in_child(job: Callable[[], None]) -> int:
    """Fork, run ``job`` in the child, and return its process id."""
    child = os.fork()
    if child == 0:
        try:
            job()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child
