"""How MLflow's page of a study lists its cells: the columns that make them comparable, saved as a view of the study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

_NAME = "cells"
_RUN, _CREATED, _DESCRIPTION = "attributes.`Run Name`", "runDateAndNestInfo", "attributes.`Description`"
_METRICS = ("n", "accuracy", "clean/accuracy", "change/accuracy", "rougeL", "clean/rougeL", "change/rougeL")
_TAGS = ("category", "task", "answered_by", "perturb", "level")
# A run's name says what it is, its description the headline's change and category, whatever the task: both are wide.
# The others are to be sorted, filtered and grouped by.
_CHOSEN = [_DESCRIPTION, *(f"metrics.`{metric}`" for metric in _METRICS), *(f"tags.`{tag}`" for tag in _TAGS)]
_WIDTHS = {_RUN: 320, _CREATED: 120, _DESCRIPTION: 360}  # pixels


def _state() -> str:
    """Return a view as MLflow's page keeps it (3.17).

    By this filter, and in any order but that of time, cells stand in one list; else they hide under their sweep.
    """
    state = {
        "searchFilter": "tags.kind = 'cell'",
        "orderByKey": "tags.`mlflow.runName`",
        "orderByAsc": True,
        "selectedColumns": _CHOSEN,
        "columnOrder": [_RUN, _CREATED, *_CHOSEN],
        "columnWidths": {**dict.fromkeys(_CHOSEN, 110), **_WIDTHS},
        "runsHiddenMode": "FIRST_20_RUNS",
    }
    return json.dumps({"name": "Cells", "createdAt": 1, "updatedAt": 1, "state": json.dumps(state)})


# Of a study's experiment in MLflow. The second opens it at its runs, not at traces, which it has none of.
TAGS: Mapping[str, str] = MappingProxyType(
    {f"mlflow.sharedViewState.{_NAME}": _state(), "mlflow.experimentKind": "custom_model_development"}
)


def address(server: str, experiment: str) -> str:
    """Return where the cells of a study are listed, by the id of its experiment.

    >>> address("http://127.0.0.1:5000", "1")
    'http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning&viewStateShareKey=cells'
    """
    return f"{server}/#/experiments/{experiment}/runs?workflowType=machine_learning&viewStateShareKey={_NAME}"
