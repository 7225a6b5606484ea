"""What may be an address of a server."""

from urllib.parse import quote

import pytest

from noisyhealth.errors import ConfigError
from noisyhealth.models.chat.endpoint import Remote

SECRET = "sEcr3t-0123456789"


def check(url: str) -> None:
    Remote("m", url, "m", key_variable="").check()


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "http://127.0.0.1:8000/v1",
        "http://localhost:11434/v1/",
        "http://[::1]:8080/v1",
        "https://x.openai.azure.com/openai/deployments/m?api-version=2025-01-01",
        "https://host/v1/a@b",
    ],
)
def test_an_address_without_a_secret_may_be_used(url: str) -> None:
    check(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"https://me:{SECRET}@host/v1", "a user or a password before its @"),
        (f"https://{SECRET}@host/v1", "a user or a password before its @"),
        (f"https://me:@{SECRET}/v1", "a user or a password before its @"),
        (f"https://host/v1?api-key={SECRET}", "a secret, as the parameter api-key"),
        (f"https://host/v1?a=b&Subscription-Key={SECRET}", "a secret, as the parameter Subscription-Key"),
        (f"https://host/v1?access_token={SECRET}", "a secret, as the parameter access_token"),
        (f"https://host/v1?client%5Fsecret={SECRET}", "a secret, as the parameter client_secret"),
        (f"https://host/v1?sv=1&sig={SECRET}", "a secret, as the parameter sig"),
        (f"https://host/v1#token={SECRET}", "a secret, as the parameter token"),
        (f"https://host/v1?auth={SECRET}", "a secret, as the parameter auth"),
        (f"https://host/v1?code={SECRET}", "a secret, as the parameter code"),
        (f"https://host/v1?pass={SECRET}", "a secret, as the parameter pass"),
    ],
)
def test_a_secret_in_an_address_is_refused_without_being_repeated(url: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check(url)
    assert f"weights.gpt.endpoint.url holds {said}" in str(refused.value)
    assert "weights.gpt.endpoint.key_variable" in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("place", ["https://host/{}/v1", "https://{}.host/v1", "https://host/v1?x={}"])
@pytest.mark.parametrize("key", [SECRET, "sEcr3t 0123"])
def test_the_key_itself_is_refused_wherever_it_stands_in_an_address(
    monkeypatch: pytest.MonkeyPatch, place: str, key: str
) -> None:
    monkeypatch.setenv("SOME_KEY", key)
    with pytest.raises(ConfigError, match="holds the key itself") as refused:
        Remote("m", place.format(quote(key)), "m", key_variable="SOME_KEY").check()
    assert key not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        *[
            "",
            "127.0.0.1:8000/v1",
            "host/v1",
            "ftp://host/v1",
            "http://",
            "http:///v1",
            "http://[::1/v1",
            "http://host:x/v1",
        ],
        *[f"me:{SECRET}@host/v1", f"http://[me:{SECRET}@host/v1", f"host?key={SECRET}"],
    ],
)
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"weights\.gpt\.endpoint\.url") as refused:
        check(url)
    assert SECRET not in str(refused.value)
