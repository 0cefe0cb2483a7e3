"""``evenhand synthesize --resume``: the fit that an earlier run of the same command began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.cli.synthetic_data import SyntheticData

if TYPE_CHECKING:
    from evenhand.generators.synthesizer import Synthesizer


def halfway(data: SyntheticData, method: str) -> Synthesizer:
    """Return the generator of --save whose fit was interrupted, if it is the one that is asked for.

    Raises
    ------
    ValueError
        If it has ended, or was begun with anything else; nothing was spent.
    """
    from evenhand.generators import load

    given = data.given
    if given.save is None:
        raise ValueError(
            "--resume goes on with the fit in the folder of --save, which is missing. Name it."
        )
    found = load(given.save)
    if not found.unfinished_:
        raise ValueError(
            f"{given.save} holds no fit that was interrupted: there is nothing to resume. Draw "
            f"from it with evenhand.generators.load, or leave out --resume and name a new folder."
        )
    claim, asked = found.guarantee_, data.generator(method)
    was = _said(found.method, found.settings(), claim.epsilon, claim.delta, claim.unit)
    was |= {"--label and --sensitive": found.conditions_.names}
    unit = "record" if given.unit is None else given.unit_name
    now = _said(method, asked.settings(), given.epsilon, given.delta, unit)
    now |= {"--label and --sensitive": (given.label, *given.sensitive)}
    other = [name for name in was | now if was.get(name) != now.get(name)]
    if other:
        each = "; ".join(f"{name} {was.get(name)!r}, now {now.get(name)!r}" for name in other)
        raise ValueError(
            f"The fit in {given.save} was begun with {each}. Repeat the command as it was, with "
            f"--resume; another fit needs a new folder, and its budget."
        )
    return found


def _said(
    method: str, settings: dict[str, Any], epsilon: float, delta: float, unit: str
) -> dict[str, Any]:
    """Return what decides a fit, by the words of the command line."""
    own = {"--method": method, "--epsilon": epsilon, "--delta": delta, "unit": unit}
    return own | {f"--setting {name}": value for name, value in settings.items()}
