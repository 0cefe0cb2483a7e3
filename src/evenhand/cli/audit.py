"""``evenhand audit``: whether methods keep their claims, tried on neighbors of a small table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand.cli import options
from evenhand.cli.console import emit, progress_bars, show, table

if TYPE_CHECKING:
    from evenhand.testing.attack import Attack
    from evenhand.testing.audit import Case, Finding

REFUTED: Final = 3
_COLUMNS: Final = ("method", "most moved by", "verdict", "releases", "moved", "mu shown", "claimed")


def audit(
    methods: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[METHOD]...",
            help="Methods to audit, by their names in train and synthesize; `images:` goes before "
            "those of pictures.",
            show_default="all of them",
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(min=100, help="Samples of an attack on each side; more show more."),
    ] = 1000,
    statistics: Annotated[
        bool,
        typer.Option(
            "--statistics",
            help="Attack whole fits too, with secret seeds and with one public seed: "
            "six fits for each of the runs.",
        ),
    ] = False,
    half_noise: Annotated[
        bool,
        typer.Option(
            "--half-noise",
            help="Draw half the noise that is charged for, on purpose: all must be refuted.",
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Try whether methods keep their claims; exit code 0 if none is refuted, 3 if one is.

    On small made tables: what one record moves in each release, by the definition; what is
    published beside the ledger; and a lower bound on mu by an attack, false with probability 1e-6.
    "moved" is the largest movement of a release, as a share of what is declared.
    """
    from evenhand.testing.attack import HalfNoise
    from evenhand.testing.cases import cases

    chosen = _chosen(methods or [], cases())
    noise = HalfNoise() if half_noise else None
    audited = []
    with progress_bars() as bars:
        for at, case in enumerate(chosen):
            bars("audits", at, len(chosen))
            audited.append(_audited(case, runs, statistics, noise))
    refuted = [one["method"] for one in audited if one["refuted"]]
    if json:
        emit({"refuted": refuted, "runs": runs, "half_noise": half_noise, "audits": audited})
    else:
        show(table(_COLUMNS, [_row(one) for one in audited], text=3))
        show(*(f"{one['method']}: {words}" for one in audited for words in one["problems"]))
        said = f"refuted: {'; '.join(refuted)}" if refuted else "no claim is refuted"
        show(f"{len(audited)} methods and settings; {said}.")
    if refuted:
        raise typer.Exit(REFUTED)


def _chosen(methods: list[str], known: dict[str, Case]) -> list[Case]:
    """Return the cases of these methods with all their settings."""
    names = list(dict.fromkeys(name.split(",")[0] for name in known))
    for method in methods:
        if method not in names and method not in known:
            raise ValueError(
                f"{method!r} is no method that promises privacy. Choose from: {', '.join(names)}."
            )
    return [
        case
        for name, case in known.items()
        if not methods or name in methods or name.split(",")[0] in methods
    ]


def _audited(case: Case, runs: int, statistics: bool, noise: Any) -> dict[str, Any]:
    """Return everything that an audit of one case found, as plain values."""
    from evenhand.testing.attack import attack_fits, attack_noise
    from evenhand.testing.audit import audit_sensitivity
    from evenhand.testing.neighbors import neighbors_of

    found = audit_sensitivity(case, noise=noise)
    tried = [one for one in found if not one.skipped]
    worst = max(tried, key=lambda one: (one.refuted, one.mu_moved))
    attacks = [attack_noise(case, runs=runs * case.more_runs, noise=noise)]
    if statistics:
        (neighbor,) = (one for one in neighbors_of(case.rows) if one.name == worst.neighbor)
        attacks += [
            attack_fits(case, neighbor, runs=runs, mode="system", noise=noise),
            attack_fits(case, neighbor, runs=runs, mode="fixed seed", noise=noise),
        ]
    problems = [f"{one.neighbor}: {words}" for one in tried for words in one.problems]
    problems += [_words(attack) for attack in attacks if attack.refuted]
    return {
        "method": case.name,
        "relation": case.relation,
        "worst": worst.neighbor,
        "largest": max(one.largest for one in tried),
        "mu_claimed": worst.mu_claimed,
        "refuted": bool(problems),
        "problems": problems,
        "neighbors": [_finding(one) for one in found],
        "attacks": [
            {
                "neighbor": one.neighbor,
                "mode": one.mode,
                "runs": one.runs,
                "mu_shown": one.mu_shown,
                "mu_claimed": one.mu_claimed,
                "refuted": one.refuted,
            }
            for one in attacks
        ],
    }


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "neighbor": found.neighbor,
        "skipped": found.skipped or None,
        "releases": [
            {"mechanism": move.mechanism, "rows": move.n_rows, "moved_of_declared": move.largest}
            for move in found.movements
        ],
        "mu_moved": None if found.skipped else found.mu_moved,
        "problems": list(found.problems),
    }


def _words(attack: Attack) -> str:
    return (
        f"an attack ({attack.mode}, {attack.neighbor}) shows mu {attack.mu_shown:.3g}, above "
        f"the claimed {attack.mu_claimed:.3g}"
    )


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    tried = [found for found in one["neighbors"] if found["skipped"] is None]
    worst = next(found for found in tried if found["neighbor"] == one["worst"])
    shown = max(attack["mu_shown"] for attack in one["attacks"])
    return (
        one["method"],
        one["worst"],
        "REFUTED" if one["refuted"] else "holds",
        str(sum(release["rows"] for release in worst["releases"])),
        f"{one['largest']:.3f}",
        f"{shown:.2f}",
        f"{one['mu_claimed']:.2f}",
    )
