"""Is a study whole? What its grid of cells lacks, and what in it cannot be compared, before any table is made."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

FINISHED = "FINISHED"
NONE = "none"
DIMENSIONS = ("weights", "task", "model", "perturb", "level")

Factors: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CellRun:
    """One run of one cell, as the store has it.

    `part`: which model of the study is played ("gpt"), `model`: by whom. `status`: MLflow's. `examples`, `code` and
    `prompt`: hashes of the texts, of the code and of how it was asked. `rate`: fraction of the words. `begun`: when, in
    any unit. `factors`: the settings of an ablation with their values, by name; cells with the same ones make a grid.
    """

    run: str
    task: str
    part: str
    model: str
    weights: str
    perturb: str
    level: str
    status: str
    examples: str
    code: str
    begun: float
    prompt: str = ""
    rate: float = 0.0
    factors: Factors = ()

    @property
    def place(self) -> tuple[str, str, str, str, str, Factors]:
        """Where the run stands in the grid."""
        return self.weights, self.task, self.model, self.perturb, self.level, self.factors


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that keeps a study from being whole; `runs` are those it concerns."""

    kind: str
    what: str
    runs: tuple[str, ...] = ()


def problems(
    found: Sequence[CellRun],
    expected: Mapping[str, Sequence[str]] | None = None,
    swept: Sequence[Mapping[str, Sequence[str]]] = (),
) -> list[Problem]:
    """Return what is wrong with the runs of a study, nothing where it is whole.

    A cell is done when one of its runs is FINISHED, whatever became of others; of several the newest counts, and those
    by other code than its own are superseded: a study that was run again by newer code is whole. `expected` may name
    task, model (the part), perturb and level; what it does not name is what the runs have, for each weights and each
    value of an ablation's factors: every task with every model, perturbation and level. `swept`: what each sweep set
    out to run (weights, task, model, perturb, level and its factors, each a list); its cells are expected too, as far
    as `expected` does not leave them out; runs that it leaves out are no problem either.
    """
    found = [run for run in found if within(run, expected or {})]
    done = sorted((run for run in found if run.status == FINISHED), key=lambda run: run.begun)
    newest = {run.place: run for run in done}
    rivals = [run for run in done if run.code == newest[run.place].code]
    return [
        *_absent(found, expected or {}, swept),
        *_undone(found),
        *_twice(rivals),
        *_mixed(list(newest.values())),
    ]


def summary(listed: Sequence[Problem]) -> str:
    """Return how many problems of each kind there are.

    >>> summary([Problem("missing", "a"), Problem("missing", "b"), Problem("mixed code", "c")])
    '2 missing, 1 mixed code'
    """
    return ", ".join(f"{count} {kind}" for kind, count in Counter(one.kind for one in listed).items())


def within(run: CellRun, expected: Mapping[str, Sequence[str]]) -> bool:
    """Tell whether a run belongs to a grid that was named; the clean texts belong to every one.

    >>> qa = CellRun("r", "qa", "gpt", "gpt(X)", "w", "typo", "low", FINISHED, "", "", 0)
    >>> within(qa, {"model": ["gpt"]}), within(qa, {"level": ["high"]})
    (True, False)
    """
    own = {"task": run.task, "model": run.part, "perturb": run.perturb, "level": run.level}
    clean = ("perturb", "level") if run.perturb == NONE else ()
    return all(own[name] in given for name, given in expected.items() if given and name not in clean)


def _absent(
    found: Sequence[CellRun], expected: Mapping[str, Sequence[str]], swept: Sequence[Mapping[str, Sequence[str]]]
) -> Iterator[Problem]:
    """Yield the cells of the grid, and of the sweeps, that nobody has begun."""
    lacking = [*_lacking(found, expected), *_unbegun(found, expected, swept)]
    yield from (Problem("missing", what) for what in dict.fromkeys(lacking))


def _lacking(found: Sequence[CellRun], expected: Mapping[str, Sequence[str]]) -> Iterator[str]:
    there = {run.place for run in found}
    for weights, factors in dict.fromkeys((run.weights, run.factors) for run in found):
        runs = [run for run in found if (run.weights, run.factors) == (weights, factors)]
        tasks = expected.get("task") or dict.fromkeys(run.task for run in runs)
        conditions = _conditions(runs, expected)
        models = dict.fromkeys(run.model for run in runs)
        unseen = [part for part in expected.get("model", ()) if part not in {run.part for run in runs}]
        for task, model, (perturb, level) in product(tasks, [*models, *unseen], conditions):
            if (weights, task, model, perturb, level, factors) not in there:
                yield _name(weights, task, model, perturb, level, factors)


def _unbegun(
    found: Sequence[CellRun], expected: Mapping[str, Sequence[str]], swept: Sequence[Mapping[str, Sequence[str]]]
) -> Iterator[str]:
    """Yield the cells that a sweep set out to run and never came to."""
    there = {(run.weights, run.task, run.part, run.perturb, run.level, run.factors) for run in found}
    names = {(run.weights, run.part): run.model for run in found}
    for choices in swept:
        swept_factors = sorted(choices.keys() - set(DIMENSIONS))
        parts = [choices[name] for name in (*DIMENSIONS, *swept_factors)]
        for weights, task, part, perturb, level, *values in product(*parts):
            own = NONE if perturb == NONE else level
            factors = tuple(zip(swept_factors, values, strict=True))
            asked = CellRun("", task, part, "", weights, perturb, own, "", "", "", 0)
            if (weights, task, part, perturb, own, factors) not in there and within(asked, expected):
                yield _name(weights, task, names.get((weights, part), part), perturb, own, factors)


def _conditions(runs: Sequence[CellRun], expected: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return the disturbances of the grid, each with its level."""
    seen = dict.fromkeys((run.perturb, run.level) for run in runs)
    perturbs = expected.get("perturb") or dict.fromkeys(perturb for perturb, _ in seen)
    levels = expected.get("level") or dict.fromkeys(level for _, level in seen if level != NONE)
    return [(perturb, level) for perturb in perturbs for level in ([NONE] if perturb == NONE else levels)]


def _undone(found: Sequence[CellRun]) -> Iterator[Problem]:
    """Yield the cells that were begun and never finished, by what became of the last try."""
    tries = defaultdict(list)
    for run in sorted(found, key=lambda run: run.begun):
        tries[run.place].append(run)
    for place, runs in tries.items():
        if all(run.status != FINISHED for run in runs):
            kind = {"RUNNING": "unfinished", "SCHEDULED": "unfinished"}.get(runs[-1].status, runs[-1].status.lower())
            yield Problem(kind, _name(*place), tuple(run.run for run in runs))


def _twice(done: Sequence[CellRun]) -> Iterator[Problem]:
    """Yield the cells that have several finished runs by the same code: their settings differ."""
    places = defaultdict(list)
    for run in done:
        places[run.place].append(run.run)
    for place, runs in places.items():
        if len(runs) > 1:
            yield Problem("duplicate", f"{_name(*place)}: {len(runs)} finished runs", tuple(runs))


def _mixed(done: Sequence[CellRun]) -> Iterator[Problem]:
    """Yield what differs between cells that stand in one table."""
    if len(played := Counter(run.weights for run in done)) > 1:
        yield Problem("mixed weights", f"{_shares(played)}; no row of a table mixes them")
    if len(codes := Counter(run.code for run in done)) > 1:
        yield Problem("mixed code", f"runs of {len(codes)} versions of the code: {_shares(codes)}")
    for weights, task, factors in dict.fromkeys((run.weights, run.task, run.factors) for run in done):
        runs = [run for run in done if (run.weights, run.task, run.factors) == (weights, task, factors)]
        if len(examples := Counter(run.examples for run in runs)) > 1:
            yield Problem(
                "mixed examples", f"{task}, weights {weights}: not all on the same texts, {_shares(examples)}"
            )
        yield from _apart(runs)
    yield from _differently(done)


def _differently(done: Sequence[CellRun]) -> Iterator[Problem]:
    """Yield tasks that models were asked by different prompts, and levels that are not one rate."""
    asked: defaultdict[tuple[str, str, Factors], Counter[str]] = defaultdict(Counter)
    given: defaultdict[tuple[str, str, str, Factors], Counter[str]] = defaultdict(Counter)
    for run in done:
        asked[run.weights, run.task, run.factors][run.prompt] += 1
        given[run.weights, run.perturb, run.level, run.factors][f"{run.rate:g}"] += 1
    for (weights, task, _), prompts in asked.items():
        if len(prompts) > 1:
            yield Problem("mixed prompts", f"{task}, weights {weights}: {_shares(prompts)}")
    for (weights, perturb, level, _), rates in given.items():
        if len(rates) > 1:
            yield Problem("mixed rates", f"{perturb} {level}, weights {weights}: {_shares(rates)}")


def _apart(runs: Sequence[CellRun]) -> Iterator[Problem]:
    """Yield the cells that are on other texts than their baseline."""
    baselines = {run.model: run.examples for run in runs if run.perturb == NONE}
    for run in runs:
        if run.examples != baselines.get(run.model, run.examples):
            yield Problem("other texts than the baseline", _name(*run.place), (run.run,))


def _name(weights: str, task: str, model: str, perturb: str, level: str, factors: Factors = ()) -> str:
    set_to = [f"{name}={value}" for name, value in factors]
    return " · ".join([task, model, perturb, *([level] if level != NONE else []), *set_to, f"weights {weights}"])


def _shares(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} in {count} runs" for name, count in counts.items())
