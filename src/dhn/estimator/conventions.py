"""scikit-learn's conventions: parameters, score and readable forms, without depending on it."""

import abc
import html
from typing import Any

import numpy as np

from dhn.checks import whole
from dhn.errors import UserError
from dhn.estimator.answers import AbstractAnswers
from dhn.files.accepting import TrajectoriesLike, as_trajectories

OBSERVED = 16
"""States that a score's forecast is made from, at most: the paper's number."""


class AbstractConventions(AbstractAnswers):
    """An estimator that `clone`, `GridSearchCV` and notebooks can handle.

    The constructor takes any option by name and keeps what it was given in `given`.
    """

    given: dict[str, Any]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the constructor was given; options that were left out keep the recipe's values.

        Arguments:
            deep: Part of scikit-learn's convention; no parameter is an estimator.

        Returns:
            Name -> value, as given.
        """
        return dict(self.given)

    def set_params(self, **params: Any) -> "AbstractConventions":
        """Change options by name; the estimator is untrained afterwards.

        Arguments:
            params: Any option of the constructor.

        Returns:
            The estimator itself.
        """
        if params:
            type(self).__init__(self, **{**self.given, **params})
        return self

    def score(self, data: TrajectoriesLike, *, observe: int | None = None) -> float:
        """R² of completing trajectories: 1 is perfect, 0 is as good as the mean.

        The first states of each trajectory are observed; R² = 1 - (squared error) / (variance) of
        every coordinate over the remaining known states, averaged over coordinates.

        Arguments:
            data: Trajectories that the model was not trained on.
            observe: States that are observed; a quarter of them, up to 16, by default.

        Returns:
            The score; minus infinity if a prediction is not finite.
        """
        truth = as_trajectories(data)
        least = max(1, min(OBSERVED, truth.states // 4))
        observe = least if observe is None else whole("observe", observe)
        found = self.complete(truth, observe)
        later = truth.has_known_q[:, observe:]
        if not later.any():
            raise UserError(f"nothing to score: no state after the first {observe} is known.")
        real = truth.q[:, observe:][later]
        error = np.sum((found.q[:, observe:][later] - real) ** 2, axis=0)
        spread = np.sum((real - real.mean(0)) ** 2, axis=0)
        if not spread.all():
            still = truth.names[int(np.argmin(spread))]
            raise UserError(f"the coordinate {still!r} does not change; R² needs a variance.")
        found = float(np.mean(1 - error / spread))
        return found if np.isfinite(found) else -np.inf

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.given.items())
        return f"{type(self).__name__}({options})"

    def _repr_html_(self) -> str:
        """A small table for notebooks."""
        rows = {**self.given, **self._described()}
        rows = {name: x if isinstance(x, str) else repr(x) for name, x in rows.items()}
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(str(name))}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{cells}</table>"

    @abc.abstractmethod
    def _described(self) -> dict[str, Any]:
        """Facts about the trained model; empty before training."""

    def __sklearn_tags__(self) -> Any:
        """Neither classifier nor regressor; takes trajectories with missing numbers, no target."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=False, three_d_array=True, allow_nan=True),
        )
