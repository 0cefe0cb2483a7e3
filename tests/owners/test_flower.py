"""A round over Flower's SecAgg+: every message of the protocol, between apps in one process."""

import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from evenhand import Budget
from evenhand.owners.digests import PublicRows
from evenhand.owners.noisy_sums import NoisySums, plan_round
from evenhand.owners.vote_file import VoteFile

flwr = pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Context, Error, Message, RecordDict  # noqa: E402 - once it is there
from flwr.client import ClientApp, NumPyClient  # noqa: E402
from flwr.client.mod import secaggplus_mod  # noqa: E402
from flwr.serverapp import Grid  # noqa: E402
from flwr.supercore.task_identity import TaskIdentity  # noqa: E402

from evenhand.owners.flower import RoundFailed, client_app, server_app  # noqa: E402

N_OWNERS, N_ROWS = 6, 400
pytestmark = pytest.mark.filterwarnings("ignore")


class InOneProcess(Grid):
    """Carries the messages of the server to the clients' apps; a killed client stays silent."""

    def __init__(self, app, contexts, dies_at=None) -> None:
        self.app, self.contexts, self.dies_at = app, contexts, dies_at or {}
        self.stages = {}

    def set_run(self, run):
        pass

    @property
    def run(self):
        return SimpleNamespace(run_id=1)

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self):
        return list(self.contexts)

    def push_messages(self, messages):
        raise NotImplementedError

    def pull_messages(self, message_ids):
        raise NotImplementedError

    def send_and_receive(self, messages, *, timeout=None):
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            stage = self.stages[node] = self.stages.get(node, 0) + 1
            if node in self.dies_at and stage >= self.dies_at[node]:
                continue
            try:
                reply = self.app(copy.deepcopy(message), self.contexts[node])  # as a wire does
            except Exception as error:
                reply = Message(Error(1, str(error)), reply_to=message)
            replies.append(reply)
        return replies


def scene(**more):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(N_ROWS, 2)), columns=list("ab"))
    files = [
        VoteFile.cast(f"owner {i}", rng.integers(2, size=N_ROWS), rows, classes=[0, 1])
        for i in range(N_OWNERS)
    ]
    plan, ledger = plan_round(
        Budget(epsilon=2.0, delta=1e-3),
        n_owners=N_OWNERS,
        public=PublicRows.of(rows),
        classes=["0", "1"],
        **more,
    )
    accounts = [plan.ledger() for _ in files]

    def votes(context):
        i = int(context.node_config["partition-id"])
        return files[i], accounts[i]

    contexts = {
        100 + i: Context(
            run_id=1,
            node_id=100 + i,
            node_config={"partition-id": i},
            state=RecordDict(),
            run_config={},
        )
        for i in range(N_OWNERS)
    }
    return files, plan, ledger, accounts, client_app(votes), contexts


def run(plan, ledger, app, contexts, dies_at=None) -> NoisySums:
    held = []
    grid = InOneProcess(app, contexts, dies_at)
    server = server_app(plan, ledger, held.append, timeout_s=5)
    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1  # as a SuperLink does
    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})
    server(grid, context)
    return held[0]


def test_the_server_holds_the_noisy_sum_and_each_owner_paid() -> None:
    files, plan, ledger, accounts, app, contexts = scene(n_dropouts=1)
    sums = run(plan, ledger, app, contexts)
    assert sums.n_answered == N_OWNERS
    clean = np.sum([file.parts.sum(axis=0)[:, 1:] for file in files], axis=0)
    # Six shares of sigma^2 / 5: any error of quantisation or masks would be thousands of times it.
    wanted = plan.sigma**2 * 6 / 5
    assert abs((sums.sums - clean).var() - wanted) < 6 * wanted * np.sqrt(2 / N_ROWS)
    assert all(account.spent == pytest.approx(ledger.spent) for account in accounts)


def test_a_killed_client_costs_its_votes_and_nothing_else() -> None:
    files, plan, ledger, accounts, app, contexts = scene(n_dropouts=1)
    # After it has shared its keys: the others take its masks off.
    sums = run(plan, ledger, app, contexts, dies_at={102: 3})
    assert sums.n_answered == N_OWNERS - 1
    left = [file.parts.sum(axis=0)[:, 1:] for i, file in enumerate(files) if i != 2]
    wanted = plan.sigma**2
    noise = sums.sums - np.sum(left, axis=0)
    assert abs(noise.var() - wanted) < 6 * wanted * np.sqrt(2 / N_ROWS)
    assert accounts[2].spent == 0


def test_too_few_answers_fail_the_round_and_a_second_run_is_refused() -> None:
    _, plan, ledger, accounts, app, contexts = scene(n_dropouts=1)
    with pytest.raises(RoundFailed, match="Fewer than 5 of 6 owners answered"):
        run(plan, ledger, app, contexts, dies_at={102: 3, 103: 3})
    assert ledger.spent > 0  # it was paid for before anybody was asked
    spent = [account.spent for account in accounts]
    # The owners' own accounts refuse whoever asks them again.
    with pytest.raises(RoundFailed):
        run(plan, ledger, app, contexts)
    assert [account.spent for account in accounts][:2] == spent[:2]


def test_a_server_that_invents_the_other_owners_reads_one_share_and_the_claim_says_so() -> None:
    files, plan, ledger, _, app, contexts = scene(n_dropouts=1)

    class Invented(NumPyClient):
        def fit(self, parameters, config):
            return [np.zeros((N_ROWS, 1))], 1, {}

    empty = ClientApp(client_fn=lambda _: Invented().to_client(), mods=[secaggplus_mod])

    def asked(message, context):
        return (empty if context.node_config["partition-id"] else app)(message, context)

    sums = run(plan, ledger, asked, contexts)
    noise = sums.sums - files[0].parts.sum(axis=0)[:, 1:]
    wanted = plan.sigma**2 / 5
    assert abs(noise.var() - wanted) < 6 * wanted * np.sqrt(2 / N_ROWS)
    assert "follows their protocol and invents no owner" in " ".join(sums.vouched_for)
