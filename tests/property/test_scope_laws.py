"""Laws of every scope: allows only add, denies only take away, agents and token bounds only narrow, and it is good
until the moment it names.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, seed, settings
from hypothesis import strategies as st
from property.policies import (
    MOMENTS,
    PRINCIPALS,
    STEADY,
    Given,
    Granted,
    granted,
    narrowings,
    never_revoked,
    policies,
)
from property.stage import Stage

from app.authz.compile import compile_scope
from app.db.session import Transaction
from app.domain.access import AccessScope, Action, Effect
from app.domain.principal import Narrowing, Principal

EXAMPLES = 40
ACTION = st.sampled_from((Action.SEARCH, Action.OPEN, Action.MANAGE))


def _effect(scope: AccessScope) -> tuple[set[str], set[int], bool]:
    return set(scope.collections), set(scope.classes()), scope.system


def _within(narrow: AccessScope, wide: AccessScope) -> bool:
    (slugs, classes, system), (wide_slugs, wide_classes, wide_system) = _effect(narrow), _effect(wide)
    return slugs <= wide_slugs and classes <= wide_classes and system <= wide_system


def test_an_allow_only_adds_and_a_deny_only_takes_away(stage: Stage) -> None:
    @seed(20261130)
    @settings(STEADY, max_examples=EXAMPLES)
    @given(policies(), granted(st.sampled_from(PRINCIPALS)), ACTION)
    def law(policy: Given, rule: Granted, action: Action) -> None:
        more = replace(policy, granted=(*policy.granted, rule))

        async def scopes(transaction: Transaction) -> list[tuple[AccessScope, AccessScope]]:
            before = [await compile_scope(transaction, caller, action) for caller in policy.callers]
            stage.put(more, transaction.at)
            after = [await compile_scope(transaction, caller, action) for caller in policy.callers]
            return list(zip(before, after, strict=True))

        for before, after in stage.on(policy, scopes):
            small, large = (before, after) if rule.effect is Effect.ALLOW else (after, before)
            assert _within(small, large)

    law()


def test_agents_and_token_bounds_only_narrow(stage: Stage) -> None:
    @seed(20261130)
    @settings(STEADY, max_examples=EXAMPLES)
    @given(policies(), narrowings(), ACTION)
    def law(policy: Given, bounds: Narrowing, action: Action) -> None:
        async def narrower(transaction: Transaction) -> None:
            for caller in policy.callers:
                scope = await compile_scope(transaction, caller, action)
                for party in caller.parties:
                    assert _within(scope, await compile_scope(transaction, replace(party, actor=None), action))
                free = await compile_scope(transaction, replace(caller, narrowing=None), action)
                bound = await compile_scope(transaction, replace(caller, narrowing=bounds), action)
                assert _within(scope, free)
                assert _within(bound, free)
                assert bounds.actions is None or action in bounds.actions or not bound.collections
                assert bounds.collections is None or set(bound.collections) <= bounds.collections

        stage.on(policy, narrower)

    law()


def test_nothing_changes_before_the_moment_that_a_scope_names(stage: Stage) -> None:
    @seed(20261130)
    @settings(STEADY, max_examples=EXAMPLES)
    @given(policies(moments=4), ACTION)
    def law(policy: Given, action: Action) -> None:
        async def steady(transaction: Transaction) -> None:
            for caller in policy.callers:
                for offset in (0, *policy.moments):
                    await _holds_until_it_expires(transaction, caller, action, transaction.at + _after(offset))

        stage.on(never_revoked(policy), steady)

    law()


def _after(offset: int) -> timedelta:
    return timedelta(microseconds=offset)


async def _holds_until_it_expires(transaction: Transaction, caller: Principal, action: Action, at: datetime) -> None:
    scope = await compile_scope(transaction, caller, action, at=at)
    ends = scope.expires_at
    assert ends is None or ends > at
    for offset in MOMENTS:
        later = transaction.at + _after(offset)
        if at < later and (ends is None or later < ends):
            assert _effect(await compile_scope(transaction, caller, action, at=later)) == _effect(scope)
    if ends is not None:
        last = await compile_scope(transaction, caller, action, at=ends - _after(1))
        assert _effect(last) == _effect(scope)
