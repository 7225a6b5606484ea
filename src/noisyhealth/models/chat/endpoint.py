"""Where a chat model is reached: a server of the user's or provider's, or the embedded weights on loopback."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from noisyhealth import version
from noisyhealth.errors import ConfigError, WeightsError
from noisyhealth.models.chat import loopback
from noisyhealth.models.chat.server import Served
from noisyhealth.models.local import causal
from noisyhealth.models.model import FREE, Price
from noisyhealth.models.weights import Source
from noisyhealth.paths import SECRET


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL that speaks chat completions, the key it wants, and the model's name there."""

    url: str
    key: str
    model: str


class Endpoint(Protocol):
    """A way to an address."""

    @property
    def name(self) -> str:
        """The short name of the weights behind it, for tables."""
        ...

    @property
    def identity(self) -> str:
        """What tells this endpoint's model from every other: part of the key of a reply."""
        ...

    def check(self) -> None:
        """Raise WeightsError when the endpoint cannot be used; costs no call."""
        ...

    def open(self) -> Address:
        """Return the address, with a server behind it."""
        ...

    def price(self, prices: Mapping[str, Mapping[str, float]]) -> Price | None:
        """Return what tokens cost here, by a table of models; None where the table does not say."""
        ...


@dataclass(frozen=True)
class Remote:
    """A server that is already there: OpenAI, vLLM, Ollama, llama.cpp.

    `key_variable` names the environment variable that holds the key; "" for a server that wants none.
    """

    name: str
    url: str
    model: str
    key_variable: str

    @property
    def identity(self) -> str:
        """The model's name and the server's address."""
        return f"{self.model} at {self.url}"

    def check(self) -> None:
        """Raise ConfigError for a url that is none or holds a secret, WeightsError when the variable is not set."""
        if not re.fullmatch(r"[A-Za-z_]\w*|", self.key_variable):
            raise ConfigError(
                "weights.gpt.endpoint.key_variable is not the name of an environment variable: if it is the key, which "
                "would be written into every run, put it into a variable and give that variable's name"
            )
        key = os.environ.get(self.key_variable) or ""
        _check_url(self.url, key)
        if self.key_variable and not key:
            raise WeightsError(
                f"{self.name} needs the environment variable {self.key_variable}, which is not set: "
                "set it, or use weights=embedded, which needs no key"
            )

    def open(self) -> Address:
        """Return the address with the key of the environment."""
        # The client refuses an empty key; servers that want none take any.
        return Address(self.url, os.environ.get(self.key_variable) or "EMPTY", self.model)

    def price(self, prices: Mapping[str, Mapping[str, float]]) -> Price | None:
        """Return the model's price in the table; a server that wants no key is free."""
        if not self.key_variable:
            return FREE
        return Price(**prices[self.model]) if self.model in prices else None


def _check_url(url: str, key: str) -> None:
    """Raise ConfigError, without the secret: a url goes into runs and files, where none may be."""
    try:
        parts = urlsplit(url)
        named = [name for name, _ in parse_qsl(f"{parts.query}&{parts.fragment}", keep_blank_values=True)]
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, named, sound = None, [], False
    if key and key in unquote(url):
        found = "the key itself"
    elif secret := next((name for name in named if any(sign in name.lower() for sign in SECRET)), ""):
        found = f"a secret, as the parameter {secret}"
    elif parts and "@" in parts.netloc:
        found = "a user or a password before its @"
    elif not sound:
        shown = url.partition("?")[0].partition("#")[0].rpartition("@")[2]
        raise ConfigError(
            f"weights.gpt.endpoint.url={shown!r} is no address of a server: give one as http://127.0.0.1:8000/v1"
        )
    else:
        return
    raise ConfigError(
        f"weights.gpt.endpoint.url holds {found}, and the url is written into every run: put the key into an "
        "environment variable, and that variable's name into weights.gpt.endpoint.key_variable"
    )


@dataclass(frozen=True)
class Loopback:
    """Embedded weights behind an OpenAI-compatible server on this machine, started at the first call.

    All processes of a sweep share it; it ends with the sweep.
    """

    source: Source
    dtype: str
    batch_tokens: int
    batch_size: int
    cache: str

    @property
    def name(self) -> str:
        """The weights' name."""
        return self.source.name

    @property
    def identity(self) -> str:
        """The weights' identity, the number format and the libraries they are computed with, and the server's code."""
        code = version.of("models/chat/server.py", *causal.CODE)
        return f"{self.source.identity} {causal.pick_dtype(self.dtype)} {causal.runtime()} on loopback by {code}"

    def check(self) -> None:
        """Raise WeightsError when the weights' package is missing, ConfigError for a batch that holds nothing."""
        self.source.check()
        for name in ("batch_tokens", "batch_size"):
            if (given := getattr(self, name)) < 1:
                raise ConfigError(f"weights.gpt.endpoint.{name}={given}: give a whole number above 0")

    def open(self) -> Address:
        """Return the address of the sweep's server."""
        served = Served(self.source.folder(), self.source.name, self.dtype, self.batch_tokens, self.batch_size)
        return Address(loopback.ensure(served, self.cache), "EMPTY", self.source.name)

    def price(self, prices: Mapping[str, Mapping[str, float]]) -> Price:
        """Return that nothing is paid."""
        return FREE
