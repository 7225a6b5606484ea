"""What medical terms among the disturbed words cost, each text held against itself: a linear mixed model.

Works on the frame of replies of `medical`. Laird & Ware 1982, doi:10.2307/2529876, by statsmodels.
"""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from noisyhealth.analysis import medical
from noisyhealth.analysis.p_value import positive

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

_SINGULAR = 1e-8  # variance between texts as a share of that within them, below which there is none


@dataclass(frozen=True, slots=True)
class Effect:
    """A fixed effect: its estimate, the ends of its 95 % interval, and its p, by the normal distribution (Wald).

    The standard error is statsmodels', of the information on all parameters. lme4 takes the variances as known; its
    errors were up to .4 % smaller with 40 texts.
    """

    estimate: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class MixedResult:
    """The model score ~ medical + edits + perturbation + level, with a random intercept for each text.

    `medical`: points of the score (0 to 1) between a text of whose edited words none is a medical term and one of whose
    all are; `edits`: points for one more edited word. Each is None, never NaN, where `note` says why.
    `n`: rows fitted, one an example and condition, each the mean over `models` models (`incomplete` of them over
    fewer); `groups`: texts with an intercept; `unedited`: replies left out because no word was edited.
    `between`, `within`: variances of the intercepts and of the rest.
    """

    weights: str
    task: str
    n: int
    groups: int
    models: int
    incomplete: int
    unedited: int
    medical: Effect | None = None
    edits: Effect | None = None
    between: float | None = None
    within: float | None = None
    note: str = ""


def mixed(items: "pd.DataFrame") -> list[MixedResult]:
    """Return the model of each weights and task, in the order of their first row.

    The score is averaged over models for each example, perturbation and level first: the question is what the texts
    do, and models that answer one text are no new texts. Estimated by restricted maximum likelihood; the intercept is
    of the group (a patient, a series), of the example where it has none. Scores of 0 and 1 make it a linear probability
    model: an effect is in points of probability, and the interval rests on many texts, not on normal errors.
    A fit that fails, does not converge, or finds no variance between texts has a note and no numbers; so has one where
    the share of medical terms never differs, or the score within no text. A perturbation or level that is alone is left
    out of the model, edits that never differ too, with a note.

    Raises DataError for a frame that fails `medical.check`.
    """
    medical.check(items)
    parts = items.reset_index(drop=True).groupby(["weights", "task"], observed=True, sort=False)
    return [_of(str(weights), str(task), part) for (weights, task), part in parts]


def _of(weights: str, task: str, items: "pd.DataFrame") -> MixedResult:
    edited = items[items["medical"].notna()]
    rows = _averaged(edited)
    models = int(edited["model"].nunique())
    bare = MixedResult(
        weights=weights,
        task=task,
        n=len(rows),
        groups=int(rows["unit"].nunique()),
        models=models,
        incomplete=int((rows["models"] < models).sum()),
        unedited=len(items) - len(edited),
    )
    for name, what in (("medical", "the share of medical terms"), ("right", "the score")):
        if rows[name].nunique() < 2:
            return replace(bare, note=f"{what} never differs among {len(rows)} rows: there is nothing to fit")
    if not 1 < bare.groups < bare.n:
        note = f"{bare.n} answers to {bare.groups} texts: a mixed model needs 2 texts, and several answers to some"
        return replace(bare, note=note)
    if rows.groupby("unit")["right"].nunique().max() < 2:
        return replace(bare, note="no text's score differs between its conditions: there is nothing to fit")
    return _fitted(bare, rows)


def _averaged(items: "pd.DataFrame") -> "pd.DataFrame":
    """Return a row an example and condition: the mean score of the models, and how many they are."""
    rows = items.assign(unit=medical.units(items))
    found = rows.groupby(["id", "perturb", "level"], observed=True, sort=False)
    frame = found[["right", "medical", "edits", "unit"]].mean()
    return frame.astype({"unit": int}).assign(models=found["model"].nunique()).round(9).reset_index()


def _fitted(bare: MixedResult, rows: "pd.DataFrame") -> MixedResult:
    import numpy as np
    from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams

    design, edits = _design(rows)
    left_out = "" if edits else "every text has the same number of edits at a condition: they are not in the model"
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return replace(bare, note="medical share, perturbation and level cannot be told apart in these texts")
    score, texts = rows["right"].to_numpy(dtype=float), rows["unit"].to_numpy()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            first, ratio = _start(score, design, texts)
            begin = MixedLMParams.from_components(fe_params=first, cov_re=np.array([[ratio]]))
            fit = MixedLM(score, design, groups=texts).fit(reml=True, start_params=begin, method=["bfgs", "powell"])
        except (np.linalg.LinAlgError, ValueError) as error:
            return replace(bare, note=f"the model could not be fitted: {error}")
    said = "; ".join(dict.fromkeys(str(one.message) for one in told))
    within, between = float(fit.scale), float(np.asarray(fit.cov_re)[0, 0])
    errors = np.asarray(fit.bse_fe, dtype=float)
    if not fit.converged or not np.isfinite(errors).all():
        return replace(bare, note=f"the fit did not converge: {said or 'no standard errors'}")
    if between < _SINGULAR * within or within <= 0:
        return replace(bare, note=f"the fit is singular, no variance between texts is left: {said or between}")
    estimates = np.asarray(fit.fe_params, dtype=float)
    scale = float(rows["edits"].std()) if edits else 1.0
    return replace(
        bare,
        medical=_effect(estimates[1], errors[1]),
        edits=_effect(estimates[2] / scale, errors[2] / scale) if edits else None,
        between=between,
        within=within,
        note="; ".join(one for one in (left_out, said) if one),
    )


def _design(rows: "pd.DataFrame") -> "tuple[NDArray[np.float64], bool]":
    """Return the columns 1, medical, edits (standardised) and others against the first, and whether edits are in."""
    import numpy as np
    import pandas as pd

    others = pd.get_dummies(rows[["perturb", "level"]].astype(str), drop_first=True, dtype=float).to_numpy()
    first = np.column_stack([np.ones(len(rows)), rows["medical"].to_numpy(dtype=float)])
    numbers = rows["edits"].to_numpy(dtype=float)
    if numbers.std() > 0:
        standard = ((numbers - numbers.mean()) / numbers.std(ddof=1))[:, None]
        whole = np.column_stack([first, standard, others])
        if np.linalg.matrix_rank(whole) > np.linalg.matrix_rank(np.column_stack([first, others])):
            return whole, True
    return np.column_stack([first, others]), False


def _start(
    score: "NDArray[np.float64]", design: "NDArray[np.float64]", texts: "NDArray[Any]"
) -> "tuple[NDArray[np.float64], float]":
    """Return effects by least squares and a ratio of variances by moments.

    From there a fit takes a third of the time, and none was seen to run into a singular matrix.
    """
    import numpy as np
    import pandas as pd

    effects = np.linalg.lstsq(design, score, rcond=None)[0].astype(np.float64)
    rest = pd.Series(score - design @ effects).groupby(texts)
    sizes = rest.size()
    within = float((rest.var(ddof=0) * sizes).sum()) / (len(score) - len(sizes))
    between = float(rest.mean().var()) - within / float(sizes.mean())
    return effects, max(between / within, 0.01) if within > 0 else 1.0


def _effect(estimate: float, error: float) -> Effect:
    from scipy.stats import norm

    half = float(norm.ppf(0.975)) * float(error)
    p = positive(2 * float(norm.sf(abs(estimate) / error)))
    return Effect(float(estimate), float(estimate) - half, float(estimate) + half, p)
