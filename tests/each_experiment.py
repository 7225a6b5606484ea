"""Runs commands one after the other, each in a fork of one process that has imported everything already.

    python each_experiment.py REPOSITORY COMMANDS.json RESULTS.json

A command is a list of words: run, analyze, or a command of `python -m noisyhealth`, and its arguments. A result has
`code`, `stdout` and `stderr`. The commands of one list run until one of them does not end with 0.
"""

import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

HEAVY = ("matplotlib.figure", "mlflow", "pandas", "pingouin", "scikit_posthocs", "spacy", "statsmodels.formula.api")
HEAVY += ("sqlalchemy.orm", "mlflow.store.tracking.sqlalchemy_store", "torchmetrics.functional.classification")


def main() -> None:
    conf, given, told = Path(sys.argv[1]) / "conf", Path(sys.argv[2]), Path(sys.argv[3])
    for module in HEAVY:
        import_module(module)
    from noisyhealth.commands import parser
    from noisyhealth.report import analyse
    from noisyhealth.sweep import command
    from noisyhealth.text.tagger import Tagger

    list(Tagger(frozenset({"NOUN"})).tag(["loaded once"]))
    scripts = {"run": lambda: command.main(conf), "analyze": lambda: analyse.main(conf)}
    results = {}
    for name, steps in json.loads(given.read_text()).items():
        results[name] = []
        for step in steps:
            other = lambda step=step: parser.main(step)  # noqa: E731
            results[name].append(forked(scripts.get(step[0], other), step))
            if results[name][-1]["code"]:
                break
    told.write_text(json.dumps(results))


def forked(work, step):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        if not (child := os.fork()):
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv[:] = [f"{step[0]}.py", *step[1:]]
            code = 70
            try:
                code = work()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode())
        return {"code": code, "stdout": said[0], "stderr": said[1]}


if __name__ == "__main__":
    main()
