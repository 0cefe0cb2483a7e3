"""Decisions as a service: a model behind a margin, a refused case, and a person who decides it.

Run: python examples/service.py (needs the extra serve)
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand import Budget, DemographicParity, FairSharesClassifier


def applications(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Invent applications for a loan, and the group of each applicant."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(["women", "men"], n)
    income = rng.normal(50 + 5 * (groups == "men"), 15, n).round(1)
    return pd.DataFrame({"income": income, "job": rng.choice(["clerk", "cook"], n)}), groups


def evenhand(*words: str) -> str:
    """Run a command and return what it prints."""
    command = [sys.executable, "-m", "evenhand", *words]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def call(url: str, token: str, body: object = None, **headers: str) -> Any:
    """Ask a server, with JSON both ways."""
    sent = None if body is None else json.dumps(body).encode()
    known = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, sent, known | headers)) as answer:
        return json.load(answer)


def main() -> None:
    X, groups = applications(2000, seed=0)
    repaid = np.where(X["income"] > 50, "yes", "no")
    model = FairSharesClassifier(
        budget=Budget(epsilon=8.0, delta=1e-5),
        fairness=DemographicParity(margin=0.1),
        n_teachers=20,
        random_state=0,
    )
    model.fit(X[:1500], repaid[:1500], X_public=X[1500:], sensitive_features_public=groups[1500:])
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        store = ("--store", str(Path(folder, "decisions.db")))
        tokens = {
            role: evenhand("tokens", "add", name, "--role", role, *store)
            for name, role in (("bank", "decider"), ("anna", "reviewer"))
        }
        words = ("serve", str(Path(folder, "model")), "--margin", "0.02", "--sensitive", "sex")
        server = subprocess.Popen(
            [sys.executable, "-m", "evenhand", *words, *store, "--port", "0", "--json"],
            text=True,
            stdout=subprocess.PIPE,
        )
        try:
            listens = json.loads(server.stdout.readline())
            use(f"http://127.0.0.1:{listens['port']}", tokens)
        finally:
            server.terminate()
            server.communicate(timeout=60)


def use(url: str, tokens: dict[str, str]) -> None:
    """Ask for 500 decisions, and decide one that was refused."""
    X, groups = applications(500, seed=1)
    rows = X.assign(sex=groups).to_dict("records")
    key = {"Idempotency-Key": "applications-of-monday"}
    decided = call(f"{url}/decide", tokens["decider"], {"rows": rows}, **key)["decisions"]
    again = call(f"{url}/decide", tokens["decider"], {"rows": rows}, **key)["decisions"]
    assert again == decided  # asked twice, counted once
    state = call(f"{url}/state", tokens["reviewer"])
    print(f"{state['n_given']} of {state['n_decisions']} have a label; gap {state['gap']:.4f}")
    queue = call(f"{url}/queue", tokens["reviewer"])
    case = queue["cases"][0]
    print(f"waits for a person: {case['reason']}, the model said {case['said']}")
    for outcome in case["outcomes"]:
        print(f"  {outcome['action']} {outcome['label']}: gap {outcome['gap']:.4f}")
    choice = {"action": "withdraw"}
    stands = call(f"{url}/queue/{case['id']}", tokens["reviewer"], choice)
    print("decided by", stands["reviews"][0]["by"])
    print(state["claim"])


if __name__ == "__main__":
    main()
