"""One tree of errors; every message has the value, where it came from and what to do.

NoisyHealthError
|-- ConfigError      a setting that cannot be used
|-- DataError        a file, row or column that cannot be used
|-- WeightsError     weights, a key or a server that are not there
|-- CallError        a model that did not answer
|   `-- RefusedError     a server that would refuse every further call, or is not there
|-- BudgetError      a budget that is used up
`-- StoreError       MLflow cannot be used
    |-- JournalError     the journal or the budget's file cannot be used
    `-- UnreachableError MLflow's database, folder or server cannot be reached
"""


class NoisyHealthError(Exception):
    """The root: catch it to catch everything this package raises on purpose."""


class ConfigError(NoisyHealthError):
    """A setting that cannot be used; names its key and what would do."""


class DataError(NoisyHealthError):
    """Data that cannot be used; names the file, the row and the column."""


class WeightsError(NoisyHealthError):
    """Weights, a key or a server that are not there; names what would bring them."""


class CallError(NoisyHealthError):
    """A call that no retry could save; names the endpoint and the first cause."""


class BudgetError(NoisyHealthError):
    """A budget that is used up; names what is left undone. It ends the sweep."""


class RefusedError(CallError):
    """A server that would refuse every further call, or is not there; names what it said and what to do."""


class StoreError(NoisyHealthError):
    """A store that cannot be used; names its address."""


class JournalError(StoreError):
    """A file of replies or money that cannot be read or written; ends the sweep, whose replies would be lost."""


class UnreachableError(StoreError):
    """A database, folder or server of MLflow that cannot be read or written; ends the sweep, which has no record."""
