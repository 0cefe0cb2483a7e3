"""A round of noisy sums as a Flower app: owners are clients, the server is the aggregator.

Needs Flower (extra ``flower``), whose SecAgg+ masks what the clients send: the server holds the
sum. What it holds is noisy, as every client adds its share of the noise before it is masked. No
client checks the keys of others, which the server passes on: one that invents the other owners, or
tells some of them that an owner has left, reads single shares.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from evenhand._extras import MissingExtra, installed
from evenhand.owners.noisy_sums import NoisySums, Round, noisy_share
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import Ledger
from evenhand.typing import IntArray

PLAN: Final = "evenhand round"
MODULUS: Final = 2**32
FEWEST: Final = 3
"""Owners below which a sum says what each of them said."""


class RoundFailed(RuntimeError):
    """Too few owners answered. The round is paid for, and nothing of it may be used."""


def server_app(
    plan: Round, ledger: Ledger, done: Callable[[NoisySums], None], *, timeout_s: float = 600.0
) -> Any:
    """Return a ``ServerApp`` that asks all owners once.

    Parameters
    ----------
    plan : Round
    ledger : Ledger
        Of ``plan_round``: it has paid already. A second run needs a second plan, so it is charged
        twice; this app refuses to run twice.
    done : callable
        Called with the sums.
    timeout_s : float
        How long to wait in each stage of the masks for owners that do not answer.

    Raises
    ------
    MissingExtra
        If Flower is not installed.
    """
    _require_flower()
    server = import_module("flwr.server")
    workflow = import_module("flwr.server.workflow")
    if plan.least_answers < FEWEST:
        raise ValueError(
            f"{plan.n_owners} owners of whom {plan.n_dropouts} may drop out leave "
            f"{plan.least_answers}, and masks need {FEWEST}. Ask more owners."
        )
    app = server.ServerApp()
    asked: list[bool] = []

    @app.main()  # type: ignore[untyped-decorator]
    def main(grid: Any, context: Any) -> None:
        if asked:
            raise RoundFailed("This round was asked already. Plan another: it is charged again.")
        asked.append(True)
        reach = reach_of(plan)
        strategy = _strategy(plan, ledger)
        legacy = server.LegacyContext(
            context=context, config=server.ServerConfig(num_rounds=1), strategy=strategy
        )
        masks = workflow.SecAggPlusWorkflow(
            num_shares=1.0,
            reconstruction_threshold=plan.least_answers / plan.n_owners,
            max_weight=1.0,
            clipping_range=float(reach),
            quantization_range=2 * reach,  # whole numbers stay as they are
            modulus_range=MODULUS // 2,
            timeout=timeout_s,
        )
        workflow.DefaultWorkflow(fit_workflow=masks)(grid, legacy)
        if strategy.sums is None:
            raise RoundFailed(
                f"Fewer than {plan.least_answers} of {plan.n_owners} owners answered: the noise "
                f"would be less than what was charged. Plan another round, with more n_dropouts."
            )
        done(strategy.sums)

    return app


def client_app(votes: Callable[[Any], tuple[VoteFile, Ledger]]) -> Any:
    """Return a ``ClientApp`` of an owner.

    Parameters
    ----------
    votes : callable
        From Flower's context of a client to its votes and its own account. The account is charged
        whenever somebody asks; one that is kept (``DatabaseStore``) refuses the second time.
    """
    _require_flower()
    client = import_module("flwr.client")
    mods = import_module("flwr.client.mod")

    class Owner(client.NumPyClient):  # type: ignore[misc, name-defined]
        def __init__(self, context: Any) -> None:
            self.context = context

        def fit(self, parameters: Any, config: Any) -> tuple[list[Any], int, dict[str, Any]]:
            plan = Round.from_dict(json.loads(config[PLAN]))
            file, account = votes(self.context)
            share = noisy_share(file, plan, account)
            return [share.astype(np.float64)], 1, {}

    return client.ClientApp(
        client_fn=lambda context: Owner(context).to_client(), mods=[mods.secaggplus_mod]
    )


def reach_of(plan: Round) -> int:
    """Return the power of 2 that no count and share of one owner passes, but once in 10^30."""
    most = plan.n_teachers * plan.scale + plan.most_noise
    reach = int(2 ** math.ceil(math.log2(most + 1)))
    if plan.n_owners * 2 * reach >= MODULUS // 2:
        raise ValueError(
            f"{plan.n_owners} owners with counts up to {most:.3g} do not fit the masks, which add "
            f"modulo 2^31. Vote with labels instead of probabilities, or ask fewer owners."
        )
    return reach


def _strategy(plan: Round, ledger: Ledger) -> Any:
    """Return what Flower calls a strategy: whom to ask, and what becomes of the sum."""
    common = import_module("flwr.common")
    base = import_module("flwr.server.strategy").Strategy

    class Sums(base):  # type: ignore[misc, valid-type]
        sums: NoisySums | None = None

        def initialize_parameters(self, client_manager: Any) -> Any:
            return common.ndarrays_to_parameters([np.zeros(1)])

        def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
            clients = client_manager.sample(
                num_clients=plan.n_owners, min_num_clients=plan.n_owners
            )
            told = common.FitIns(parameters, {PLAN: json.dumps(plan.to_dict())})
            return [(client, told) for client in clients]

        def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
            n = len(results)
            if n < plan.least_answers:
                return None, {}
            mean = common.parameters_to_ndarrays(results[0][1].parameters)[0]
            total: IntArray = np.rint(mean * n).astype(np.int64)
            self.sums = NoisySums(round=plan, sums=total, n_answered=n, ledger=ledger)
            return None, {}

        def configure_evaluate(self, *_: Any, **__: Any) -> Any:
            return []

        def aggregate_evaluate(self, *_: Any, **__: Any) -> Any:
            return None, {}

        def evaluate(self, *_: Any, **__: Any) -> Any:
            return None

    return Sums()


def _require_flower() -> None:
    if not installed("flwr"):
        raise MissingExtra.of("A round over Flower", "flwr", "flower")
