"""Access tokens of an identity provider: what opens, what does not, and its keys over time."""

import base64
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey
from support.provider import Provider

from app.domain.access import Action
from app.errors import ConfigurationError, IssuerUnavailable, Unauthenticated
from app.identity.access_tokens import AccessTokens
from app.identity.issuers import Issuer, configured
from app.identity.keys import REFRESH_SECONDS, REST_SECONDS, STALE_SECONDS

HERE = "https://stacks.example/mcp"


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def own() -> Iterator[Provider]:
    with Provider().running() as provider:
        yield provider


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def checks(own: Provider, clock: Clock) -> AccessTokens:
    return AccessTokens([Issuer(own.issuer)], HERE, clock=clock)


async def test_a_token_says_who_in_which_groups_and_how_far(own: Provider, checks: AccessTokens) -> None:
    who = await checks.authenticate(own.token("alice", HERE, groups=["eng", "sec"], scope="openid search open"))

    assert who.key == f"{own.issuer}|alice"
    assert who.group_keys == (f"{own.issuer}|eng", f"{own.issuer}|sec")
    assert who.narrowing is not None and who.narrowing.actions == frozenset({Action.SEARCH, Action.OPEN})
    assert who.narrowing.expires_at is not None and who.actor is None


async def test_the_outermost_actor_acts_whatever_history_it_carries(own: Provider, checks: AccessTokens) -> None:
    act = {"sub": "agent", "groups": ["bots"], "act": {"sub": "an agent before"}}
    who = await checks.authenticate(own.token("alice", HERE, act=act))

    assert [party.key for party in who.parties] == [f"{own.issuer}|alice", f"{own.issuer}|agent"]
    assert who.parties[1].group_keys == (f"{own.issuer}|bots",)


async def test_scopes_of_the_issuers_own_open_what_the_setting_says(own: Provider) -> None:
    setting = [{"issuer": own.issuer, "scopes": {"mcp:read": ["search", "open"]}, "audience": "urn:here"}]
    checks = AccessTokens(configured("STACKS_ISSUERS", json.dumps(setting)), HERE)
    who = await checks.authenticate(own.token("alice", "urn:here", scope="mcp:read search ingest"))

    assert who.narrowing is not None and who.narrowing.actions == frozenset({Action.SEARCH, Action.OPEN})


async def test_a_token_without_a_scope_opens_nothing(own: Provider, checks: AccessTokens) -> None:
    who = await checks.authenticate(own.token("alice", HERE, scope=None))

    assert who.narrowing is not None and who.narrowing.actions == frozenset()


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "https://elsewhere.example/mcp"},
        {"aud": None},
        {"iss": "https://elsewhere.example"},
        {"iss": None},
        {"iss": ["https://elsewhere.example"]},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "a\nb"},
        {"sub": "x" * 600},
        {"exp": 1},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": 1e300},
        {"nbf": 1e11},
        {"scope": ["search"]},
        {"groups": "eng"},
        {"groups": ["eng", 7]},
        {"groups": [f"g{number}" for number in range(1001)]},
        {"_claim_names": {"groups": "src1"}},
        {"act": "agent"},
        {"act": {}},
        {"act": {"sub": "agent", "iss": "https://elsewhere.example"}},
    ],
    ids=lambda claims: str(claims)[:40],
)
async def test_claims_that_do_not_hold_open_nothing(
    own: Provider, checks: AccessTokens, claims: dict[str, Any]
) -> None:
    said = {"sub": "alice", "aud": HERE, **claims}
    with pytest.raises(Unauthenticated):
        await checks.authenticate(own.token(said.pop("sub"), said.pop("aud"), **said))


async def test_an_id_token_is_no_access_token(own: Provider, checks: AccessTokens) -> None:
    for kind in ("JWT", None, "id+jwt"):
        with pytest.raises(Unauthenticated):
            await checks.authenticate(own.token("alice", HERE, header={"typ": kind}))


async def test_a_key_of_somebody_else_signs_nothing(own: Provider, checks: AccessTokens) -> None:
    foreign = RSAKey.generate_key(2048, {"kid": own.key.kid or ""})
    named = {"jwk": foreign.as_dict(private=False), "jku": f"{own.issuer}/others"}

    for header in ({}, named):
        with pytest.raises(Unauthenticated):
            await checks.authenticate(own.token("alice", HERE, key=foreign, header=header))


async def test_no_signature_and_a_signature_by_a_public_key_are_none(own: Provider, checks: AccessTokens) -> None:
    claims = {"iss": own.issuer, "sub": "alice", "aud": HERE, "exp": int(time.time()) + 300, "scope": "search"}
    kid = {"typ": "at+jwt", "kid": own.key.kid}
    signed = f"{_encoded({'alg': 'HS256', **kid})}.{_encoded(claims)}"
    confused = f"{signed}.{_base64(hmac.digest(own.key.as_pem(private=False), signed.encode(), 'sha256'))}"
    none = f"{_encoded({'alg': 'none', **kid})}.{_encoded(claims)}."

    assert (await checks.authenticate(own.token("alice", HERE))).subject == "alice"
    for token in (confused, none, none + "e30", confused.rpartition(".")[0] + "."):
        with pytest.raises(Unauthenticated):
            await checks.authenticate(token)


def _encoded(part: dict[str, Any]) -> str:
    return _base64(json.dumps(part).encode())


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c", "..", "a.W10.c", "a.e30.c", "é.é.é", f"a.{'W1tb' * 5000}.b"])
async def test_what_is_no_token_is_refused(checks: AccessTokens, text: str) -> None:
    with pytest.raises(Unauthenticated):
        await checks.authenticate(text)


async def test_a_new_key_is_fetched_when_a_token_names_it_and_not_at_every_call(
    own: Provider, checks: AccessTokens, clock: Clock
) -> None:
    before = own.token("alice", HERE)
    await checks.authenticate(before)
    own.key = ECKey.generate_key("P-256", {"kid": "second"})
    after = own.token("alice", HERE, header={"alg": "ES256"})

    for _ in range(5):  # the keys were fetched just now: whoever invents key ids cannot make us a burden to the issuer
        with pytest.raises(Unauthenticated):
            await checks.authenticate(after)
    assert own.fetches == 1
    clock.now += REST_SECONDS
    assert (await checks.authenticate(after)).subject == "alice"
    with pytest.raises(Unauthenticated):
        await checks.authenticate(before)
    assert own.fetches == 2


async def test_a_withdrawn_key_ends_within_the_hour(own: Provider, checks: AccessTokens, clock: Clock) -> None:
    before = own.token("alice", HERE)
    await checks.authenticate(before)
    own.key = RSAKey.generate_key(2048, {"kid": "second"})
    clock.now += REFRESH_SECONDS + 1

    with pytest.raises(Unauthenticated):
        await checks.authenticate(before)


async def test_while_the_issuer_is_away_its_keys_are_trusted_for_a_day(
    own: Provider, checks: AccessTokens, clock: Clock
) -> None:
    token = own.token("alice", HERE)
    own.up = False
    with pytest.raises(IssuerUnavailable):
        await checks.authenticate(token)
    own.up = True
    clock.now += REST_SECONDS
    assert (await checks.authenticate(token)).subject == "alice"

    own.up = False
    clock.now += STALE_SECONDS - 1
    assert (await checks.authenticate(token)).subject == "alice"
    clock.now += 2 * REST_SECONDS
    with pytest.raises(IssuerUnavailable):
        await checks.authenticate(token)


@pytest.mark.parametrize(
    "value",
    [
        "nonsense",
        "{}",
        "[7]",
        "[{}]",
        '[{"issuer": ""}]',
        '[{"issuer": "local"}]',
        '[{"issuer": "http://idp.example"}]',
        '[{"issuer": "https://idp.example/a|b"}]',
        '[{"issuer": "https://idp.example"}, {"issuer": "https://idp.example"}]',
        '[{"issuer": "https://idp.example", "jwks_uri": "http://10.0.0.1/keys"}]',
        '[{"issuer": "https://idp.example", "alg": "none"}]',
        '[{"issuer": "https://idp.example", "scopes": {"read": "search"}}]',
        '[{"issuer": "https://idp.example", "scopes": {"read": ["everything"]}}]',
    ],
)
def test_a_wrong_setting_is_refused_by_its_name(value: str) -> None:
    with pytest.raises(ConfigurationError, match="STACKS_ISSUERS is wrong"):
        configured("STACKS_ISSUERS", value)
