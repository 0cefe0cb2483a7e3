"""Pictures for ``evenhand synthesize``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import BadZipFile

from evenhand._checks import did_you_mean
from evenhand.cli import vocabulary
from evenhand.cli.console import Bars
from evenhand.cli.failures import as_bad_input
from evenhand.cli.synthesis import GAPS
from evenhand.cli.synthesize_options import SynthesizeOptions

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.datasets.images import ImageData
    from evenhand.generators.images.codec import ImageSample
    from evenhand.generators.images.evaluation import ImageEvaluation
    from evenhand.generators.images.synthesizer import ImageSynthesizer

PICTURES: Final = "images"
ENDING: Final = ".npz"


class Pictures:
    """Private pictures, arrays in an .npz; see ``SyntheticData``."""

    payload, default, words = "images", "mean-embedding", "pictures"

    private: ImageData
    test: ImageData | None
    units: Any

    def __init__(self, given: SynthesizeOptions) -> None:
        self._given = given

    def refuse(self) -> None:
        """Refuse options of tables, and another ending."""
        given = self._given
        for option, value in (
            ("--parity", given.parity != "none"),
            ("--schema", given.schema),
            ("--drop", given.drop),
            ("--keep", given.keep),
            ("--reference", given.reference),
        ):
            if value:
                raise ValueError(f"{option} is for tables, and {given.private} holds pictures.")
        if given.out.suffix != ENDING:
            raise ValueError(f"--out holds pictures and must end in {ENDING}, got {given.out}.")

    def read(self) -> None:
        """Read private and test pictures."""
        given = self._given
        names = [PICTURES, given.label, *given.sensitive]
        arrays = _read(given.private, [*names, *([] if given.unit is None else [given.unit])])
        self.units = None if given.unit is None else arrays[given.unit]
        self.private = _data(arrays, given, given.private)
        self.test = (
            None if given.test is None else _data(_read(given.test, names), given, given.test)
        )

    def noise(self) -> dict[str, Any]:
        """Return the noise that is named, or leave it to the method."""
        named = self._given.noise
        return {} if named is None else {"noise": vocabulary.noise(named)}

    def fit(self, generator: ImageSynthesizer, **how: Any) -> None:
        """Learn from the private pictures."""
        import pandas as pd

        generator.fit(
            self.private.images,
            pd.Series(self.private.y, name=self._given.label),
            sensitive_features=self.private.sensitive_features,
            unit_ids=self.units,
            **how,
        )

    def draw(self, generator: ImageSynthesizer) -> ImageSample:
        """Draw balanced pictures."""
        given = self._given
        drawn: ImageSample = generator.sample(
            given.rows, balance=given.balanced, random_state=given.seed
        )
        return drawn

    def evaluate(
        self, generator: ImageSynthesizer, drawn: ImageSample, bars: Bars
    ) -> ImageEvaluation:
        """Measure on the test pictures."""
        from evenhand.generators.images.evaluation import evaluate_images

        assert self.test is not None
        return evaluate_images(drawn, self.test, train=self.private, progress=bars)

    def conditions(self, drawn: ImageSample) -> pd.DataFrame:
        """Return labels and groups of the pictures."""
        import pandas as pd

        frame, groups = pd.DataFrame({self._given.label: drawn.y}), drawn.sensitive_features
        return frame.join(groups) if isinstance(groups, pd.DataFrame) else frame

    def write(self, drawn: ImageSample, path: Path) -> None:
        """Write the pictures and their labels and groups as arrays."""
        import numpy as np

        frame = self.conditions(drawn)
        named = {str(name): frame[name].to_numpy() for name in frame.columns}
        # Text as fixed-width arrays: objects would make a pickle.
        named = {k: v.astype(str) if v.dtype == object else v for k, v in named.items()}
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **{PICTURES: drawn.uint8}, **named)

    def report(
        self,
        generator: ImageSynthesizer,
        drawn: ImageSample,
        path: Path,
        found: ImageEvaluation | None,
    ) -> None:
        """Write the report."""
        from evenhand.report import write_report

        name = self._given.private.name
        write_report(
            generator,
            path,
            measured=found,
            test=self.test,
            title=f"Synthetic pictures like {name}",
            dataset={"Private pictures": name, "Drawn": f"{len(drawn):,}"},
        )

    def measured(
        self, found: ImageEvaluation
    ) -> tuple[Sequence[tuple[str, str]], list[tuple[str, str]]]:
        """Return the gaps, and how even the groups are that the pictures show."""
        if found.judged is None:
            return GAPS, []
        return GAPS, [
            ("KL of the groups shown, to even ones", f"{found.judged.balance.kl.value:.5f}"),
            ("  by a classifier whose accuracy is", f"{found.judged.accuracy:.3f}"),
        ]


def _read(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return arrays of a file; nothing in it is run."""
    import numpy as np

    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    no_array = ValueError(
        f"{path} is not a file of arrays of numbers or text ({ENDING}). Write it with "
        f"numpy.savez; objects are not read, for they could run code."
    )
    try:
        held = np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError, BadZipFile):
        raise no_array from None
    if not isinstance(held, np.lib.npyio.NpzFile):
        raise no_array
    with held:
        for name in names:
            if name not in held.files:
                raise ValueError(
                    f"{path} has no array {name!r}; it has {', '.join(map(repr, held.files))}."
                    f"{did_you_mean(name, held.files)} Pictures are read from the array 'images'."
                )
        try:
            return {name: held[name] for name in names}
        except (OSError, EOFError, ValueError, BadZipFile):
            raise no_array from None


def _data(arrays: dict[str, Any], given: SynthesizeOptions, path: Path) -> ImageData:
    import pandas as pd

    from evenhand.datasets.images import ImageData

    lengths = {name: values.shape[:1] for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {n[0] if n else 'none'}" for name, n in lengths.items())
        raise ValueError(f"The arrays of {path} have different lengths: {said}.")
    with as_bad_input(TypeError, ValueError, where=str(path)):
        return ImageData(
            images=arrays[PICTURES],
            y=arrays[given.label],
            sensitive_features=pd.DataFrame({name: arrays[name] for name in given.sensitive}),
            name=path.stem,
        )
