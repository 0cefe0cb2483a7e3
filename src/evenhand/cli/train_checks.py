"""Which options of ``evenhand train`` go together, and which need another."""

from __future__ import annotations

from evenhand import _words
from evenhand._checks import non_negative, one_of, open_unit
from evenhand._notions import OF_DECISIONS
from evenhand.cli import options, pictures, tables
from evenhand.cli.train_estimator import fairness_of
from evenhand.cli.train_limits import refuse_notion, refuse_protection, refuse_unread
from evenhand.cli.train_options import TrainOptions


def check(given: TrainOptions) -> None:
    """Refuse options that do not go together, before any file is read."""
    from evenhand.privacy import Budget

    tables.require_outside(given.private, given.out)
    known = given.spec
    refuse_protection(known, given.protect)
    refuse_unread(known, given.beyond(known))
    pictures.check(given, teacher=given.teacher_kind, reads_pixels=known.reads_pictures)
    held = given.notion.name
    if given.pull is not None:
        non_negative("--pull", given.pull)
    non_negative("--fairness-weight", given.fairness_weight)
    if not (given.keeps_margin_after and known.margin != "needed"):  # what comes after keeps any
        refuse_notion(known, held, given.fairness)
    if given.neighbors is not None:
        one_of("--neighbors", given.neighbors, _words.NEIGHBORS)
    if known.private:
        if given.epsilon is None:
            raise ValueError(
                "--epsilon is missing. Say how much privacy loss is allowed, for example "
                "--epsilon 3; for a reference that is not private at all: --method non-private."
            )
        Budget(epsilon=given.epsilon, delta=given.delta)
    _check_margin(given)
    _check_public(given)
    mechanism = options.mechanism(
        sigma=given.sigma, threshold=given.threshold, sigma_check=given.sigma_check
    )
    if given.answers == "shares" and mechanism is not None:
        raise ValueError(
            f"--answers shares spends the budget on all public rows alike, and {mechanism!r} "
            f"draws labels. Leave out --sigma, --threshold and --sigma-check."
        )


def _check_margin(given: TrainOptions) -> None:
    """Refuse a margin without groups, a missing one, and one that nothing keeps."""
    if (given.trains_by_groups or given.keeps_margin_after) and not given.sensitive:
        raise ValueError(
            "--sensitive is missing: rates are compared between groups. Name the column of "
            "the groups, or train without a margin: --method pate."
        )
    if given.group_thresholds and given.blind_rule:
        raise ValueError(
            "--group-thresholds decide by the group, and --blind-rule without it. Leave one out."
        )
    if given.score_counts and not given.group_thresholds:
        raise ValueError(
            "--score-counts is what thresholds by group are set on. Add --group-thresholds, or "
            "leave it out."
        )
    if given.tightening is not None:
        non_negative("--tightening", given.tightening)
        if not given.group_thresholds or given.confidence is not None:
            why = "--confidence says how far" if given.group_thresholds else "there are none"
            raise ValueError(
                f"--tightening {given.tightening:g} sets thresholds by group inside the margin, "
                f"and {why}. Leave it out, or give it with --group-thresholds alone."
            )
    by_labels = given.calibration is not None and fairness_of(given, 0.0).needs_labels
    if given.score_counts and by_labels:
        raise ValueError(
            "--score-counts have no true classes, and thresholds would be set on those of "
            "--calibration alone. Leave one of them out."
        )
    if not (given.trains_within_margin or given.keeps_margin_after):
        if given.margin is not None:
            raise ValueError(
                f"--method {given.method} keeps no margin, got --margin {given.margin:g}. Leave "
                f"one of them out, or add --blind-rule (no group at prediction) or "
                f"--group-thresholds."
            )
        return
    if given.margin is None:
        raise ValueError(
            "--margin is missing. Say how far apart the groups' rates may be, for example "
            "--margin 0.05; or train without a margin: --method pate."
        )
    notion = fairness_of(given, given.margin)
    if given.confidence is not None and getattr(notion, "confidence", None) is None:
        raise ValueError(
            f"--confidence {given.confidence:g} is about rates of decisions, and --fairness "
            f"{given.fairness} compares none. Leave it out, or name another --fairness: "
            f"{', '.join(OF_DECISIONS)}."
        )
    of_truth = [name for name in ("admit_by", "gate_level") if name in given.given]
    if of_truth and not given.answer_margin:
        raise ValueError(
            f"--{of_truth[0].replace('_', '-')} is about the gate, and --no-answer-margin opens "
            f"none. Leave one of them out."
        )
    if of_truth and not notion.needs_labels:
        raise ValueError(
            f"--{of_truth[0].replace('_', '-')} is about true classes, and --fairness "
            f"{given.fairness} is about predictions alone. Leave it out."
        )
    gate_reads_truth = given.spec.accepts("admit_by") and given.answer_margin
    if given.calibration is None and notion.needs_labels and gate_reads_truth:
        raise ValueError(
            f"--fairness {given.fairness} is about true classes, and nothing tells the gate of "
            f"--method {given.method} of them. Give --calibration FILE: public rows with features, "
            f"label and sensitive columns, hundreds of each group; or read the margin from the "
            f"released answers, for the student alone: --no-answer-margin, or --method fair-shares."
        )
    chooses = given.spec.protects == "attribute" and given.confidence is not None
    if given.calibration is not None and not (notion.needs_labels or chooses):
        raise ValueError(
            f"--calibration brings true classes, and --fairness {given.fairness} is about "
            f"predictions alone. Leave it out, or name another --fairness: "
            f"{', '.join(list(OF_DECISIONS)[1:])}."
        )


def _check_public(given: TrainOptions) -> None:
    """Refuse public rows that are missing, or given twice."""
    has_public = given.public is not None
    aside = given.public_fraction is not None and not given.images
    known = has_public or aside or given.calibration is not None or given.score_counts
    if given.keeps_margin_after and not known:
        option = "--blind-rule is" if given.blind_rule else "--group-thresholds are"
        raise ValueError(
            f"{option} set on public rows whose groups are known, and --public is missing. Give "
            f"--public FILE or --public-fraction SHARE, or for a notion about true classes "
            f"--calibration FILE"
            + (
                ""
                if given.blind_rule
                else "; or set them on noisy counts: --method dpsgd --score-counts"
            )
            + "."
        )
    if given.score_counts and given.confidence is not None and not (has_public or aside):
        raise ValueError(
            f"--confidence {given.confidence:g} is about rows that thresholds were not set on, and "
            f"--score-counts have none. Give --public FILE or --public-fraction SHARE, or leave "
            f"it out."
        )
    if given.blind_rule and given.calibration is None and fairness_of(given, 0.0).needs_labels:
        raise ValueError(
            f"--fairness {given.fairness} is about true classes, and --blind-rule knows none of "
            f"the public rows. Give --calibration FILE: public rows with labels and groups."
        )
    by_labels = given.group_thresholds and given.confidence is not None
    if by_labels and given.calibration is None and fairness_of(given, 0.0).needs_labels:
        raise ValueError(
            f"--confidence {given.confidence:g} of --fairness {given.fairness} needs true classes "
            f"of public rows. Give --calibration FILE: public rows with labels and groups; or "
            f"leave it out."
        )
    if given.confidence is not None and not given.keeps_margin_after:
        _check_rows_of_confidence(given)
    if given.spec.protects == "attribute":
        return  # the features are public: there is nothing to ask for
    if not given.spec.teachers:
        if has_public and given.public_fraction is not None:
            raise ValueError("Give either --public FILE or --public-fraction SHARE, got both.")
        known = has_public or given.schema is not None or given.public_fraction is not None
        if not (known or given.reads_pixels):
            raise ValueError(
                "Columns are scaled by public knowledge, and there is none. Give --public "
                "FILE, --public-fraction SHARE, or --schema FILE with bounds."
            )
    elif has_public and given.public_fraction is not None:
        raise ValueError(
            "Teachers are asked about public rows: give either --public FILE or "
            "--public-fraction SHARE, got both."
        )
    elif not (has_public or given.public_fraction is not None or given.draws_rows):
        raise ValueError(
            f"Teachers are asked about public {'pictures' if given.images else 'rows'}, and none "
            f"can be drawn here: give either --public FILE or --public-fraction SHARE, got neither."
        )
    if given.check_drift and not has_public:
        raise ValueError(
            "--check-drift compares the rows of --public FILE with the private ones, and there are "
            "none. Give --public FILE, or leave it out."
        )
    if given.synthetic_share is not None:
        open_unit("--synthetic-share", given.synthetic_share)
        wrong = []
        if given.public_fraction is not None:
            wrong.append("--public-fraction gives rows away, which drawn rows are to spare")
        if given.images:
            wrong.append("--images lists pictures, and rows of a table are drawn")
        if given.streams:
            wrong.append("the rows stream, and are counted in memory alone")
        if wrong:
            raise ValueError(
                f"--synthetic-share pays for noisy counts, and {'; '.join(wrong)}. Leave one of "
                f"them out."
            )


def _check_rows_of_confidence(given: TrainOptions) -> None:
    """Refuse a confidence without the rows by which a student is chosen."""
    said = f"--confidence {given.confidence:g} is about rows that had no part in training"
    if given.spec.protects == "attribute" and given.calibration is None:
        raise ValueError(
            f"{said}, and every group of the private table is private. Give --calibration FILE: "
            f"public rows with labels and groups; or leave it out."
        )
    has_public = given.public is not None or given.public_fraction is not None
    if given.spec.protects == "record" and not (has_public or given.spec.teachers):
        raise ValueError(
            f"{said}, and no public rows with groups were given. Give --public FILE, or leave it "
            f"out: training then aims for the margin."
        )
