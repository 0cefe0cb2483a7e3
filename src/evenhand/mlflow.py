"""Models, claims and cards as artifacts of an MLflow run; needs the extra ``mlflow``."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand._extras import MissingExtra, installed
from evenhand.report import write_report
from evenhand.report.card.content import QUESTIONS, ModelCard
from evenhand.report.card.formats import written
from evenhand.report.card.questions import read_filled


def log_model(
    model: Any,
    artifact_path: str = "evenhand",
    *,
    measured: Any = None,
    card: Mapping[str, Any] | None = None,
    sign: str | Path | None = None,
) -> str:
    """Log a fitted model or generator to the active run of MLflow, or to a new one.

    Parameters
    ----------
    model : classifier or generator of this package, fitted
    artifact_path : str
        Folder among the artifacts: ``model/`` as ``save`` writes it, with ``claim.json`` in it,
        beside ``report.html``, ``card.html`` and ``card.json``.
    measured : FairnessReport or Evaluation, optional
        Measurements on test rows, for a model's report and card or a generator's report. They are
        then in the run, and no guarantee covers them.
    card : mapping, optional
        What ``card.toml`` would say: a mapping per section.
    sign : path, optional
        Private Ed25519 key to sign the model's folder with.

    Returns
    -------
    str
        The id of the run.

    Privacy
    -------
    What is logged is the claim, released values, public facts and settings; beside them only what
    ``measured`` says. Parameters of the run are method, epsilon, delta, unit and neighbors.

    Raises
    ------
    MissingExtra
        If MLflow is not installed.
    """
    if not installed("mlflow"):
        raise MissingExtra.of("evenhand.mlflow", "MLflow", "mlflow")
    import mlflow

    filled = read_filled(card or {}, QUESTIONS, "card")
    made = ModelCard.of(model, measured=measured, filled=filled)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        model.save(folder / "model", **({} if sign is None else {"sign": sign}))
        write_report(model, folder / "report.html", measured=measured)
        for form in ("html", "json"):
            (folder / f"card.{form}").write_text(written(made, form), encoding="utf-8")
        run = mlflow.active_run() or mlflow.start_run()
        claimed = made.guarantee
        mlflow.log_params(
            {
                "method": made.method,
                "epsilon": claimed.epsilon,
                "delta": claimed.delta,
                "unit": claimed.unit,
                "neighbors": claimed.neighbors,
            }
        )
        mlflow.set_tag("evenhand.claim", str(claimed))
        mlflow.set_tag("evenhand.claim_holds", str(claimed.holds))
        mlflow.log_artifacts(str(folder), artifact_path)
    return str(run.info.run_id)
