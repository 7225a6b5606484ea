"""A command that cannot be carried out is answered by one readable sentence, exit code 2, and no work."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY, Ended, asked, execute

from noisyhealth.commands import parser
from noisyhealth.report import analyse
from noisyhealth.sweep import command
from noisyhealth.sweep.processes import Begun, begun

CONF = REPOSITORY / "conf"
RUN, ANALYSE, ASK = "run.py", "analyze.py", "python -m noisyhealth"
FILES = {
    "empty.csv": "",
    "header.csv": "text,target\n",
    "other.csv": "message,mood\nI feel well,positive\n",
    "good.csv": "text,target\nI feel well today,positive\n",
    "notes.txt": "I feel well",
}
OWN = "data=files data.source.paths.sentiment="

# What is given, and what the answer says of it; "·" stands between words of one setting.
TABLE: list[tuple[str, str, str]] = [
    # A choice that a group does not have.
    (
        RUN,
        "model=gtp",
        "model=gtp: there is no model 'gtp', did you mean gpt? There are bluebert, gpt, llama, majority",
    ),
    (RUN, "-m model=majority,gtp", "there is no model 'gtp', did you mean gpt?"),
    (RUN, "level=hgih", "there is no level 'hgih', did you mean high?"),
    (RUN, "level=1.5", "there is no level '1.5'. There are high, low, mid"),
    (RUN, "task=sentimant", "did you mean sentiment?"),
    (RUN, "perturb=tpyo", "did you mean typo?"),
    (RUN, "weights=studdy", "did you mean study?"),
    (RUN, "data=fils", "did you mean files?"),
    (RUN, "prompt=jsno", "did you mean json?"),
    (RUN, "tracking=lokal", "did you mean local?"),
    (RUN, "letters=querty", "did you mean qwerty?"),
    (RUN, "experiment=dmeo", "did you mean demo?"),
    (RUN, "hydra/launcher=jobib", "did you mean joblib?"),
    # What Hydra takes without a word.
    (RUN, "model=[majority,gpt]", "a cell has one model, and this would merge them; -m model=majority,gpt makes one"),
    (RUN, "model=majority level=[low,mid]", "a cell has one level"),
    (RUN, "-m model=majority level=[low,mid],high", "a cell has one level"),
    (RUN, "experiment=[shots,role] model=majority", "an experiment is a whole sweep; give one"),
    (RUN, "-m model=majority study=one,two", "study is a setting of a whole command, not of its cells"),
    (RUN, "-m model=majority tracking=local,server", "tracking is a setting of a whole command"),
    (RUN, "-m model=majority tracking.keep_text=true,false", "tracking.keep_text is a setting of a whole command"),
    (RUN, "-m model=majority cache=one,two", "cache is a setting of a whole command"),
    (RUN, "-m model=majority threads=1,2", "threads is a setting of a whole command"),
    (RUN, "-m model=majority budget.calls=1,2", "budget.calls is a setting of a whole command"),
    (RUN, "-m model=majority plan=true,false", "plan is a setting of a whole command"),
    (RUN, "-m model=majority seed=range(0,0)", "seed=range(0,0) matches nothing"),
    (RUN, "-m model=majority level=low, mid", "'level=low,' ends with a comma: give values without blanks"),
    # A value that cannot be meant.
    (RUN, "model=gpt budget.usd=nan", "budget.usd=nan: give a number of 0 or more"),
    (RUN, "model=gpt budget.usd=true", "budget.usd=True: give a number of 0 or more"),
    (RUN, "model=gpt budget.calls=2.7", "budget.calls=2.7: give a whole number of 0 or more"),
    (RUN, "model=llama model.batch_size=0", "model.batch_size=0: give a whole number above 0"),
    (RUN, "model=llama model.batch_tokens=-1", "model.batch_tokens=-1: give a whole number above 0"),
    (RUN, "model=llama weights.llama.template=foo", "weights.llama.template='foo' is none of chat, plain"),
    (RUN, "model=llama model.frequency_penalty=99", "model.frequency_penalty=99: give a number from -2 to 2"),
    (RUN, "model=gpt model.frequency_penalty=99", "model.frequency_penalty=99: give a number from -2 to 2"),
    (
        RUN,
        "model=bluebert weights.bluebert.frozen=99",
        "model.frozen=99, but the weights have 6 layers: give 6 or less",
    ),
    (RUN, "seed=true", "seed=True: give a whole number of 0 or more"),
    (RUN, "level.rate=true", "level.rate=True is not a number"),
    (RUN, "cache=", "cache='' names no folder"),
    (RUN, "valid_pos=[]", "valid_pos=[]: no word could be disturbed"),
    (RUN, "perturb.field=question", "task=sentiment asks the same question of every text: give task=qa"),
    (RUN, "task.labels=[]", "a closed task has at least two"),
    (RUN, "~seed", "the setting seed is needed, and is not there: did ~ take it away?"),
    (RUN, "perturb.levels={low:0.5,mid:0.3,high:0.1}", "give fractions that rise from low to high"),
    (RUN, "cache=/proc/none", "cache='/proc/none' cannot be made (No such file or directory); give another folder"),
    (RUN, "metric=[none,foo]", "metric=[none,foo]: there is no metric 'foo'. There are none"),
    (ANALYSE, "model=gpt", "there is no setting 'model' here, did you mean grid.model?"),
    (ANALYSE, "-m study=a,b", "study=a,b has several values: give one a command"),
    # A setting that there is not.
    (RUN, "modle=gpt", "modle=gpt: there is no setting 'modle', did you mean model?"),
    (RUN, "-m modle=gpt,llama", "did you mean model?"),
    (RUN, "rate=1.5", "there is no setting 'rate', did you mean level.rate?"),
    (RUN, "model=gpt model.temprature=1", "did you mean model.temperature?"),
    (RUN, "model=gpt temperature=1", "did you mean model.temperature?"),
    (RUN, "hydra/luncher=joblib", "did you mean hydra.launcher?"),
    (RUN, "+model.foo=1", "model.foo=1: Majority takes no 'foo'; it takes name"),
    (RUN, "model=gpt +model.concurency=9", "did you mean model.concurrency?"),
    (RUN, "+modle=gpt", "+modle=gpt: nothing reads 'modle', did you mean model?"),
    (RUN, "-m +foo=1,2", "nothing reads 'foo'"),
    (RUN, "+budget.euros=5", "nothing reads 'budget.euros'"),
    (RUN, "~keep.typos", "did you mean keep.typo?"),
    (RUN, "model=null", "there is no model 'None'"),
    (RUN, "level=null", "there is no level 'None'"),
    (RUN, "experiment=null", "there is no experiment 'None'"),
    (RUN, "+level=low", "level appears more than once"),
    (RUN, "-m level=range(1,3)", "there is no level '1'. There are high, low, mid"),
    (RUN, "-m level=glob(*x)", "matches nothing; `python -m noisyhealth list` shows"),
    (RUN, "study=null", "study='' cannot name a folder"),
    (RUN, "keep=null", "it holds perturbations by name; ~keep.typo leaves one out"),
    (RUN, "tracking.uri=foo", "is no address of runs: give sqlite:///FILE"),
    (RUN, "mitigate=spelling mitigate.commonness=3", "mitigate.commonness=3: give a list"),
    (RUN, "mitigate=spelling mitigate.commonness=[abc]", "mitigate.commonness[0]='abc': give a whole number"),
    (
        RUN,
        "data=files data.source.columns.sentiment=text data.source.paths.sentiment=good.csv",
        "name a column for each role",
    ),
    (RUN, "model=gpt model.temperature=-1", "model.temperature=-1: give a number from 0 to 2"),
    (RUN, "model=gpt weights.gpt.max_tokens=0", "model.max_tokens=0: give a whole number of tokens above 0"),
    (RUN, "model=llama model.temperature=5", "model.temperature=5: give a number from 0 to 2"),
    (RUN, "model=llama model.dtype=float15", "model.dtype='float15' is none of auto, float32, bfloat16, float16"),
    (RUN, "model=llama prompt.shots=-1", "prompt.shots=-1: give a number of examples, 0 or more"),
    (RUN, "model=gpt prompt.user='no·text'", "prompt.user of prompt study lacks {block}"),
    (RUN, "model=gpt prompt.system='{rol}'", "has {rol}, which nothing fills: it may have {role} and {instruction}"),
    (RUN, "perturb=plain perturb.unit=chars", "unit=chars counts letters case aside"),
    (ASK, "show perturb=null --text pain", "there is no perturb 'None'"),
    (ASK, "ui --port 99999999", "99999999 is no port: give 1 to 65535"),
    (ASK, "ui --store good.csv", "is no database of runs"),
    (ASK, "check --speed -5", "-5 is no speed"),
    (ASK, "bundle demo --to good.csv", "is a file, and a folder is needed"),
    (
        RUN,
        "model=gpt weights.gpt.endpoint.url=http://127.0.0.1:8000/v1",
        "there is no setting 'weights.gpt.endpoint.url' here; weights=study has it",
    ),
    (RUN, "keep.typo=null", "keep.typo=None is no perturbation: ~keep.typo leaves it out"),
    (RUN, "-m experiment=shots,role", "experiment=shots,role: an experiment is a whole sweep; give one a command"),
    (
        RUN,
        "tracking=server tracking.uri=http://127.0.0.1:9",
        "MLflow at http://127.0.0.1:9 cannot be used: [Errno 111] Connection refused. Start it",
    ),
    (ANALYSE, "demo", "'demo' has no =: give NAME=VALUE without blanks, as study=demo"),
    (ANALYSE, "study=one,two", "has several values: give one a command"),
    (ASK, "dataset export --to /proc/none", "No such file or directory"),
    (ASK, "status", "the following arguments are required: STUDY; --help"),
    # A setting that is given twice, of which Hydra would take the last.
    (RUN, "level=low level=high", "level is given twice; leave one of them out"),
    (RUN, "-m seed=1 level=low,mid seed=2", "seed is given twice"),
    # A value that is of another kind, or out of bounds.
    (RUN, "level.rate=abc", "level.rate='abc' is not a number: give a fraction of all words, as 0.3"),
    (
        RUN,
        "level.rate=0",
        "level.rate=0.0: give a fraction of all words above 0 and up to 1 (perturb=none is the baseline)",
    ),
    (RUN, "level.rate=1.5", "level.rate=1.5: give a fraction of all words above 0 and up to 1"),
    (RUN, "perturb.levels.low=abc", "perturb.levels.low='abc' is not a number: give a fraction of all words, as 0.3"),
    (RUN, "perturb=redact level=low perturb.levels.high=2", "levels.high=2: give a fraction of words, 0 to 1"),
    (RUN, "perturb.unit=letters", "unit='letters' is none of words, valid_words, chars"),
    (RUN, "perturb.nested=perhaps", "perturb.nested='perhaps': give true or false"),
    (RUN, "seed=abc", "seed='abc': give a whole number of 0 or more"),
    (RUN, "repeat=-1", "repeat=-1: give a whole number of 0 or more"),
    (RUN, "threads=0", "threads=0: give at least 1"),
    (RUN, "plan=maybe", "plan='maybe' is neither true nor false"),
    (RUN, "tracking.keep_text=maybe", "keep_text='maybe' is neither true nor false"),
    (RUN, "budget.calls=many", "budget.calls='many' is not a number"),
    (RUN, "data.split.test=0", "data.split.test=0: give at least 1 text"),
    (RUN, "data.split.test=many", "data.split.test='many': give a whole number"),
    (RUN, "data.split.prompt=1.5", "data.split.prompt=1.5: give a share between 0 and 1"),
    (RUN, "model=gpt model.temperature=hot", "model.temperature='hot': give a number"),
    (RUN, "model=gpt prompt.shots=two", "model.prompt.shots='two': give a whole number"),
    (RUN, "model=llama prompt.shots=5000", "prompt.shots=5000, but the pool for prompts holds"),
    (RUN, "valid_pos=[NOUNS]", "valid_pos has NOUNS: it may have ADJ"),
    (RUN, "protect=[numbers]", "is no kind of protection: use any of"),
    (RUN, "study=../x", "study='../x' cannot name a folder"),
    (RUN, "model=gpt weights=study", "OPENAI_API_KEY, which is not set"),
    # Several values.
    (RUN, "perturb=typo,redact", "perturb=typo,redact has several values: add -m to run a cell for each"),
    (RUN, "-m level=low,low", "level=low,low: low stands there twice, and would be the same cell"),
    (RUN, "-m seed=1,2,1", "seed=1,2,1: 1 stands there twice"),
    (RUN, "-m model=llama prompt.shots=.5,0.5", "0.5 stands there twice"),
    (
        RUN,
        "-m prompt.system=Read·this,·then·answer",
        "with -m a comma begins another value, so this would be asked 2 times",
    ),
    # What cannot be read at all.
    (RUN, "seed=[1", "'seed=[1' cannot be read: give NAME=VALUE"),
    (RUN, "typo", "'typo' has no =: give NAME=VALUE without blanks"),
    (RUN, "--modle=gpt", "there is no option --modle"),
    (RUN, "seed=1 -m level=low", "level=low stands behind an option"),
    (RUN, "--config-dir absent perturb=mine", "no folder there; give the one that holds your groups"),
    # Files of the user's.
    (RUN, "data=files", "set data.source.paths.sentiment=FILE"),
    (RUN, f"{OWN}absent.csv", "absent.csv: no such file"),
    (RUN, f"{OWN}empty.csv", "empty.csv: the file is empty"),
    (RUN, f"{OWN}header.csv", "header.csv: the file holds no text that can be used: it has no rows"),
    (RUN, f"{OWN}other.csv", "other.csv, line 2: no column 'text'; it has message, mood"),
    (RUN, f"{OWN}good.csv data.source.columns.sentiment.target=label", "no column 'label'; it has text, target"),
    (RUN, f"{OWN}notes.txt", "notes.txt: cannot read '.txt' files; give CSV"),
    # The analysis.
    (ANALYSE, "stduy=demo", "there is no setting 'stduy', did you mean study?"),
    (ANALYSE, "study=never_run", "there is no study 'never_run'"),
    (ANALYSE, "tracking=lokal", "did you mean local?"),
    (ANALYSE, "grid.modle=[gpt]", "did you mean grid.model?"),
    (ANALYSE, "grid.model=gpt,llama", "grid.model=gpt,llama has several values"),
    (ANALYSE, "allow_incomplete=maybe", "allow_incomplete='maybe' is neither true nor false"),
    (ASK, "show level=low level=high --text pain", "level is given twice"),
    (ANALYSE, "+foo=1", "nothing reads 'foo'"),
    (ANALYSE, "--foo", "there is no option --foo"),
    # The commands.
    (ASK, "lst", "there is no command 'lst', did you mean list?"),
    (ASK, "dataset biuld", "did you mean build?"),
    (ASK, "list taks", "there is no group 'taks', did you mean task?"),
    (ASK, "list --config-dir absent", "absent: no folder"),
    (ASK, "list task perturb", "'perturb' is one word too many"),
    (ASK, "show perturb=tpyo --text pain", "did you mean typo?"),
    (ASK, "show perturb=typo level=hgih --text pain", "did you mean high?"),
    (ASK, "show +perturb.foo=1 --text pain", "Disturbance takes no 'foo'"),
    (ASK, "show perturb=typo --text ·", "holds no words"),
    (ASK, "show perturb=typo", "the following arguments are required: --text"),
    (ASK, "plan model=gtp", "did you mean gpt?"),
    (ASK, "status never_run", "there is no study 'never_run'"),
    (ASK, "status never_run traking=local", "did you mean tracking?"),
    (ASK, "verify never_run", "is no file and no run's id; there is no study 'never_run'"),
    (ASK, "bundle never_run", "there is no study 'never_run' at"),
    (ASK, "diff one two", "'one' is no run's id"),
    (ASK, "dataset build taks=qa", "did you mean task?"),
    (ASK, "dataset build task=qa level.rate=abc", "level.rate='abc' is not a number"),
    (ASK, "ui", "no runs there yet"),
    (ASK, "completion fsh", "invalid choice: 'fsh'"),
    (ASK, "verify demo --foo", "unknown option --foo"),
]


@pytest.fixture
def folder(workspace: Path) -> Iterator[Path]:
    """A folder with files of a user's, and this process as a new one would be."""
    for name, content in FILES.items():
        (workspace / name).write_text(content)
    before, handler, given = dict(os.environ), signal.getsignal(signal.SIGTERM), sys.argv
    begun.__dict__.update(Begun().__dict__)
    yield workspace
    os.environ.clear()
    os.environ.update(before)
    signal.signal(signal.SIGTERM, handler)
    sys.argv = given


def words(given: str) -> list[str]:
    return [word.replace("·", " ") for word in given.split()]


def ends(script: str, arguments: list[str]) -> int:
    """Carry out a command in this process and return its exit code."""
    if script == ASK:
        return parser.main(arguments)
    sys.argv = [script, *arguments]
    return command.main(CONF) if script == RUN else analyse.main(CONF)


def check(code: int | str | None, out: str, err: str, said: str) -> None:
    assert code == 2, out + err
    assert said in err
    assert len(err.strip().splitlines()) == 1, err
    assert "Traceback" not in out + err
    assert "HYDRA_FULL_ERROR" not in err
    assert "foresaw" not in err
    assert out == ""


@pytest.mark.parametrize(("script", "given", "said"), TABLE, ids=[f"{one[0]} {one[1]}" for one in TABLE])
def test_wrong_input_is_one_readable_error_and_exit_code_two(
    folder: Path, capfd: pytest.CaptureFixture[str], script: str, given: str, said: str
) -> None:
    # Without weights and in half a second, where the table does not say which model.
    model = ["model=majority"] if script == RUN and "model=" not in given else []
    own = ["data.split.test=6"] if script == RUN and "split.test" not in given else []
    arguments = words(given)
    try:
        code: int | str | None = ends(script, [*arguments, *model, *own])
    except SystemExit as left:
        code = left.code
    check(code, *capfd.readouterr(), said)
    assert {path.name for path in folder.iterdir()} <= {*FILES, "multirun"}, "nothing was begun"


@pytest.mark.parametrize("given", ["level.rate=0.4", "level=low level.rate=0.45", "level=high level.rate=0.05"])
def test_one_cells_rate_may_be_any_beside_the_levels(
    folder: Path, capfd: pytest.CaptureFixture[str], given: str
) -> None:
    assert ends(RUN, [*words(given), "model=majority", "data.split.test=6", "plan=true"]) == 0, capfd.readouterr().err


@pytest.mark.parametrize(
    ("script", "given", "said"),
    [
        (RUN, "model=gtp", "did you mean gpt?"),
        (RUN, "-m model=majority level=low,low", "low stands there twice"),
        (ANALYSE, "stduy=demo", "did you mean study?"),
        (ASK, "show perturb=tpyo --text pain", "did you mean typo?"),
    ],
)
def test_a_process_of_its_own_answers_the_same(
    workspace: Path, shared_cache: Path, script: str, given: str, said: str
) -> None:
    start: Callable[..., Ended] = asked if script == ASK else execute
    ended = start(workspace, shared_cache, *([] if script == ASK else [script]), *words(given))
    check(ended.returncode, ended.stdout, ended.stderr, said)
