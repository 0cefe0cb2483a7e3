"""Start the server: one process with its thread, on one address."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from evenhand.serve.app import create_app
from evenhand.serve.desk import Desk

SWITCH_S: Final = 0.0005
"""How long a thread may run Python while another waits to; ten times as long is Python's own."""


class _Server(uvicorn.Server):
    """Says when it listens, and on which port."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[str, int], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: Any = None) -> None:
        """Listen."""
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._listening(host, port)


def run(
    desk: Desk, *, claim: str, host: str, port: int, listening: Callable[[str, int], None]
) -> None:
    """Answer requests until the process is told to stop; what has come is answered then.

    Parameters
    ----------
    desk : Desk
    claim : str
        The claim of the model.
    host, port : str, int
        Where to listen; port 0 takes one that is free.
    listening : callable of (str, int)
        Called when requests are answered.
    """
    # The thread that decides would keep the interpreter from the one that answers.
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()  # what is loaded now stays: to walk over it again would hold everybody up
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("evenhand.serve")
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    config = uvicorn.Config(
        create_app(desk, claim=claim),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,  # ours has no query, and the time
        server_header=False,
        h11_max_incomplete_event_size=65_536,
        timeout_graceful_shutdown=30,
    )
    _Server(config, listening).run()
