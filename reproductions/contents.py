"""Write the table of README.md here: every script, and how many of its rows agree.

    python reproductions/contents.py

The first line of a script says what it does, the second its command; its verdicts are counted in
the JSON that it saved: rows whose ``agrees`` is "yes" or "no". A test compares the page with them.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
START, END = "<!-- the table: python reproductions/contents.py -->", "<!-- end -->"
OWN = "none: a question of our own"
NONE = "-"

ABOUT_ALL = ("contents", "recheck")
"""Scripts that are about the others."""

PAPERS = {
    "assessments": OWN,
    "beside_glued": OWN,
    "blind_rules": "Xian and Zhao 2024 (LinearPost); OxonFair 0.3",
    "dp_fermi_adult": "Lowy et al. 2023, DP-FERMI: demographic parity, published points",
    "drawn_small_groups": OWN,
    "drift": OWN,
    "dpsgd_adult": "Lowy et al. 2023, DP-FERMI: published points; earlier measurements of DP-SGD",
    "dpsgd_curves": OWN,
    "doubted_rows": OWN,
    "dpsgd_features": OWN,
    "dpsgd_steps": OWN,
    "fairpate_accounting": "FairPATE, Section 3 (C3), Section 5 with Figure 4",
    "fairpate_color_mnist": "FairPATE, Tables 1 and 2; Section 5, Appendices F and H",
    "fairpate_figure2": "FairPATE, Section 5, Figures 2 and 3",
    "fairpate_frontiers": "FairPATE, Section 5, Figures 4, 5, 10 to 13",
    "fairpate_settings": "FairPATE, Table 1: settings; Algorithm 1",
    "fairpate_utkface": "FairPATE, Section 5, UTKFace; Lowy et al. 2023, UTKFace",
    "fairpate_utkface_figures": "FairPATE, Figures 4 (right), 6, 8, 9, 14 and Table 4",
    "generator_frontiers": "PFGuard, Appendix E.1 and E.2, Figures 6 to 9, asked of tables",
    "group_thresholds": OWN,
    "intervention_points": "FairPATE, Section 3 with Figure 1, Figure 4, Appendices D and E.2",
    "jagielski_adult": "Jagielski et al. 2019; Hardt et al. 2016",
    "labels_or_shares": "goals of this project; Lowy et al. 2023 for margins",
    "notions_on_adult": "FairPATE, Section 4.2 (calibration rows)",
    "pfguard_bias": "PFGuard, Sections 5.3, D.1 and E.7, Figure 4, Tables 9 and 10",
    "pfguard_clip": "PFGuard, Section 3, Figure 3",
    "pfguard_frontiers": "PFGuard, Appendix E.1, Figures 6 to 8",
    "pfguard_faces": "PFGuard, Sections 5.4 and E.8, Tables 4, 11 and 12",
    "pfguard_sampling": "PFGuard, Appendix E.3, E.5 and E.6, Tables 6, 7 and 8; Table 1",
    "pfguard_mnist": "PFGuard, Section 5.1 and 5.2, Tables 1 to 3",
    "pfguard_normalization": "PFGuard, Appendix E.4 with its table; Skare et al. 2003",
    "pfguard_teachers": "PFGuard, Sections 4.2 and 5.3, Figure 4",
    "pfguard_unknown": "PFGuard, Section 5.3, Figure 5; Appendix C.3; Choi et al. 2020",
    "pfguard_table5": "PFGuard, Appendix E.2, Table 5",
    "pfguard_table5_methods": "PFGuard, Appendix E.2, Table 5: all rows; MST; TabFairGDT; DECAF",
    "published_points": "Lowy et al. 2023, DP-FERMI: all its figures with a finite epsilon",
    "rivals": "Nori et al. 2021; Say et al. 2025; Tran et al. 2023; Ghoukasian and Asoodeh 2024; "
    "Jagielski et al. 2019; Giddens et al. 2024; Xian et al. 2024",
    "sf_pate_figure2": "SF-PATE, Sections 6.1 and 6.2, Figures 2(a) and 2(b) and its appendix",
    "sf_pate_choices": OWN,
    "margins_on_new_rows": OWN,
    "membership": "van Breugel et al. 2023, DOMIAS: the attack",
    "silos": OWN,
    "small_groups": OWN,
    "sf_pate_figure3": "SF-PATE, Section 6.1, Figure 3",
    "sf_pate_table1": "SF-PATE, Section 6.3, Table 1",
    "table_rivals": "McKenna et al. 2021 (MST) and 2022 (AIM); Zhang et al. 2014 (PrivBayes)",
    "teacher_gan_choices": OWN,
    "teachers_tried": OWN,
    "sf_pate_utkface": "SF-PATE, Section 6.3, Figure 2(c) and the last row of Table 1",
    "stand_in": "FairPATE's slides: a regulator chooses without the private data",
    "theory": "FairPATE, SF-PATE, PATE: theorems and claims of privacy",
}
# Measured on a busy core: the sum of the recorded times of fits, or the time of the process.
MINUTES = {
    "dp_fermi_adult": "19",
    "dpsgd_adult": "11",
    "fairpate_figure2": "17",
    "fairpate_frontiers": "42",
    "fairpate_utkface": "14",
    "fairpate_utkface_figures": "3",
    "intervention_points": "24",
    "jagielski_adult": "1",
    "labels_or_shares": "3",
    "pfguard_bias": "13",
    "pfguard_faces": "18",
    "pfguard_mnist": "19",
    "pfguard_table5": "6",
    "pfguard_teachers": "23",
    "pfguard_unknown": "11",
    "reviewers": "6",
    "theory": "1",
}


def verdicts(saved: dict[str, Any], *, apart: bool = False) -> tuple[int, int]:
    """Count the rows that agree and those that do not, in all tables of a saved result.

    Rows that are ``apart`` are about a baseline, a published point, or a generator in the place of
    the paper's, where a "yes" is no success of the paper's method; they are counted by themselves.
    """
    said = [
        row.get("agrees")
        for table in saved.values()
        if isinstance(table, list)
        for row in table
        if isinstance(row, dict) and bool(row.get("apart")) == apart
    ]
    return said.count("yes"), said.count("no")


def row(script: Path) -> str:
    """Return the line of one script."""
    what, command = (ast.get_docstring(ast.parse(script.read_text())) or "").split("\n\n")[:2]
    name = script.stem
    saved = HERE / "results" / f"{name}.json"
    if not saved.exists():
        result, found = "not saved yet", [(0, 0), (0, 0)]
    else:
        result, told = f"[{name}](results/{name}.md)", json.loads(saved.read_text())
        found = [verdicts(told), verdicts(told, apart=True)]
    cells = (
        f"[{script.name}]({script.name})",
        " ".join(what.split()),
        PAPERS.get(name, OWN),
        f"`{' '.join(command.split())}`",
        MINUTES.get(name, NONE),
        result,
        *(str(n) if any(counts) else NONE for counts in found for n in counts),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table() -> str:
    """Return the whole table."""
    scripts = sorted(path for path in HERE.glob("[a-z]*.py") if path.stem not in ABOUT_ALL)
    head = "| script | what | paper | command | minutes | result | agree | do not "
    head += "| apart: agree | do not |\n"
    return head + "| --- " * 10 + "|\n" + "\n".join(map(row, scripts))


def page(text: str) -> str:
    """Return the page with the present table between its two marks."""
    before, rest = text.split(START)
    after = rest.split(END)[1]
    return f"{before}{START}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
