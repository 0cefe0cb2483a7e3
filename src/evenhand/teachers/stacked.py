"""Teachers trained all at once, as one stack of models."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from evenhand._display import Shown
from evenhand._stored import stored
from evenhand.learners.learner import FittedModels, Learner
from evenhand.learners.linear import StackedLogistic
from evenhand.learners.nets.regularizer import Regularizer
from evenhand.teachers.ensemble import FittedByRecords, PrivateRecords, queries
from evenhand.typing import ArrayLike, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class StackedEnsemble:
    """Teachers that were fitted as one stack. Prints no parameter: they are private."""

    model: FittedModels = field(repr=False)
    n_teachers: int
    shape: tuple[int, ...]  # of a row

    def vote(self, X: ArrayLike) -> IntArray:
        """Return the class code of each teacher for each row, shape (n_teachers, n_queries)."""
        return self.model.predict(queries(X, self.shape))

    def scores(self, X: ArrayLike) -> FloatArray:
        """Return each teacher's score of class 1, positive where it votes for it; two classes.

        Raises
        ------
        ValueError
            If the models have no such scores: more classes, or a stack of networks.
        """
        if not hasattr(self.model, "scores"):
            raise ValueError(
                f"{type(self.model).__name__} gives votes and no scores. Use LogisticTeachers, or "
                f"SklearnTeachers with a classifier that has predict_proba."
            )
        found: FloatArray = self.model.scores(queries(X, self.shape))
        return found


class StackedTeachers(FittedByRecords, Shown):
    """Settings of teachers that one learner fits all at once: a subclass says which."""

    reads_pictures = False

    def learner(self) -> Learner:
        """Return the learner of these settings."""
        raise NotImplementedError

    def _regularizer(self) -> Regularizer | None:
        """Return what holds a network to a margin, where something does."""
        return None

    def _fit(self, given: PrivateRecords) -> StackedEnsemble:
        if given.X.ndim > 2 and not self.reads_pictures:
            raise ValueError(
                f"{type(self).__name__} reads tables, and X holds pictures of shape "
                f"{given.X.shape[1:]}. Use a network that reads pictures, for example "
                f"NetworkTeachers(Convolutional()), or features of the pictures."
            )
        model = self.learner().fit(
            given.X,
            given.y,
            given.partition.all_rows,
            n_classes=given.n_classes,
            rng=given.rng,
            progress=given.progress,
            groups=given.groups,
            n_groups=given.n_groups,
        )
        return StackedEnsemble(
            model=model, n_teachers=given.partition.n_teachers, shape=given.X.shape[1:]
        )


@stored
@dataclass(eq=False, repr=False)
class LogisticTeachers(StackedTeachers):
    """One logistic regression for each teacher, all solved at once in NumPy.

    Parameters
    ----------
    C : float
        Inverse strength of the penalty, as in scikit-learn. The default is weak on purpose: the
        vote averages the variance of the teachers away, their bias stays.
    tolerance : float
        A teacher is done when no entry of its gradient is larger, in units of its column.

    Notes
    -----
    The same models as ``SklearnTeachers(LogisticRegression(C=C))``, several times faster
    (``benchmarks/teachers_linear.py``). A teacher with one class answers it; one without records
    answers class 0.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.teachers import by_position
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> ensemble = LogisticTeachers().fit(X, y, by_position(300, 10, 0), 2, rng)
    >>> ensemble.vote([[3.0, 0.0], [-3.0, 0.0]]).mean(axis=1).shape
    (10,)
    >>> ensemble.vote([[3.0, 0.0], [-3.0, 0.0]]).sum(axis=0).tolist()
    [10, 0]
    """

    C: float = 100.0
    _: KW_ONLY
    tolerance: float = 1e-7

    def learner(self) -> Learner:
        """Return the learner of these settings."""
        return StackedLogistic(C=self.C, tolerance=self.tolerance)


@dataclass(eq=False, repr=False, kw_only=True)
class TrainedTeachers(StackedTeachers):
    """Settings of teachers that are networks; what they mean stands in ``MLPTeachers``."""

    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    device: str = "cpu"

    @property
    def _training(self) -> dict[str, Any]:
        """How they are trained, as arguments of a learner."""
        names = ("epochs", "batch_size", "learning_rate", "weight_decay", "device")
        return {name: getattr(self, name) for name in names} | {"regularizer": self._regularizer()}


@stored
@dataclass(eq=False, repr=False)
class MLPTeachers(TrainedTeachers):
    """One ReLU network for each teacher, all trained as one stacked network in PyTorch.

    Needs the extra ``torch``: ``pip install "evenhand[torch]"``.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    epochs : int
        Passes of each teacher over its own records.
    batch_size : int
        Largest number of records in one step of one teacher.
    learning_rate : float
        Of Adam, constant.
    weight_decay : float
        Weight of ``|w|^2 / 2`` in the loss, at least 0.
    device : str
        Where they are trained, as PyTorch names it.

    Notes
    -----
    No early stopping: a stopping time read from private data would be a release. Initial weights
    and batch orders of teacher ``t`` depend on ``(rng, t)`` alone. A teacher with one class
    answers it; one without records answers class 0. Trained on one thread
    (``benchmarks/teachers_mlp.py``).

    Examples
    --------
    >>> MLPTeachers(hidden=(32,), epochs=5)
    MLPTeachers(epochs=5, hidden=(32,))
    """

    hidden: tuple[int, ...] = (64, 64)

    def learner(self) -> Learner:
        """Return the learner of these settings."""
        # Here, not above: PyTorch is slow to import and only these teachers need it.
        from evenhand.learners.nets.mlp import StackedMLP

        return StackedMLP(hidden=tuple(self.hidden), **self._training)


@stored
@dataclass(eq=False, repr=False)
class NetworkTeachers(TrainedTeachers):
    """One network of any architecture for each teacher, trained as one stack, in PyTorch.

    For pictures, and for tables. Needs the extra ``torch``. ``teachers=Convolutional()`` is
    ``NetworkTeachers(Convolutional())``.

    Parameters
    ----------
    architecture : Architecture, torch.nn.Module or callable
        A named architecture (``evenhand.learners.nets.architectures``), or a function
        ``(shape, n_classes)`` that makes a module: each teacher starts from weights of its own. A
        module: all start from its weights, which must be public.
    epochs, batch_size, learning_rate, weight_decay, device
        As for ``MLPTeachers``.

    Notes
    -----
    Pixels of uint8 are read as numbers from 0 to 1, a batch at a time: the pictures themselves stay
    bytes. No early stopping, as for ``MLPTeachers``. Networks with dropout are trained one by one
    (``StackedModules`` says why); normalise by groups, not by batches. ``save`` keeps a named
    architecture, and refuses a module or a function.

    Examples
    --------
    >>> from evenhand.learners.nets.architectures import Convolutional
    >>> NetworkTeachers(Convolutional(widths=(8, 16)), epochs=5)
    NetworkTeachers(architecture=Convolutional(shape=None, widths=(8, 16), hidden=()), epochs=5)
    """

    reads_pictures = True

    architecture: Any
    _: KW_ONLY
    batch_size: int = 32
    learning_rate: float = 0.003

    def learner(self) -> Learner:
        """Return the learner of these settings."""
        # Here, not above: PyTorch is slow to import and only these teachers need it.
        from evenhand.learners.nets.stacked_modules import StackedModules

        return StackedModules(architecture=self.architecture, **self._training)
