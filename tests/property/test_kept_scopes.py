"""Whatever happens to the rules and however time goes on: a scope that was kept is the one compiled afresh."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from property.policies import HOUR, STEADY, Given, never_revoked, policies
from property.stage import Stage

from app.authz import compile
from app.authz.compile import Authority, compile_scope
from app.db.session import Transaction
from app.domain.access import AccessScope, Action
from app.domain.principal import Principal

ACTIONS = st.sampled_from((Action.SEARCH, Action.MANAGE))
EARLIER = timedelta(hours=3)  # how far the clock of a reader may be behind another's
CHANGE = """
    UPDATE {table} SET revoked_at = now() - interval '100 hours', revoked_by = 'test'
    WHERE id = (SELECT id FROM {table} WHERE revoked_at IS NULL ORDER BY granted_at, id LIMIT 1)
"""


class Kept(RuleBasedStateMachine):
    """Rules come and go, clocks go on (a reader's now and then behind), and callers ask."""

    stage: Stage

    def __init__(self) -> None:
        super().__init__()
        self.authority = Authority(cache_size=3)
        self.ahead = timedelta()
        self.policy = Given((), ())
        self.base = self.stage.run(lambda: self.stage.database.read(_moment))

    @initialize(policy=policies(asked=3))
    def begin(self, policy: Given) -> None:
        self.policy = never_revoked(policy)  # revocations come by `revoke`
        self.stage.put(self.policy, self.base)

    @rule(policy=policies(asked=1))
    def rewrite(self, policy: Given) -> None:
        """Other rules, same callers."""
        self.policy = replace(never_revoked(policy), callers=self.policy.callers)
        self.stage.put(self.policy, self.base)

    @rule(table=st.sampled_from(("memberships", "grants")))
    def revoke(self, table: str) -> None:
        self.stage.behind.execute(CHANGE.format(table=table))

    @rule(offset=st.sampled_from((1, HOUR, 2 * HOUR, 19 * HOUR)))
    def wait(self, offset: int) -> None:
        self.ahead += timedelta(microseconds=offset)

    @precondition(lambda self: self.policy.callers)
    @rule(data=st.data(), action=ACTIONS, behind=st.sampled_from((timedelta(), timedelta(), EARLIER)))
    def ask(self, data: st.DataObject, action: Action, behind: timedelta) -> None:
        caller = data.draw(st.sampled_from(self.policy.callers))
        at = self.base + self.ahead - behind

        async def both(transaction: Transaction) -> tuple[AccessScope, AccessScope]:
            moved = replace(transaction, at=at)
            kept = await self.authority.compile(moved, caller, action)
            return kept, await compile_scope(moved, caller, action, at=at)

        kept, fresh = self.stage.run(lambda: self.stage.database.read(both))
        assert _told(kept) == _told(fresh)


def _told(scope: AccessScope) -> tuple[object, ...]:
    return scope.policy_version, dict(scope.collections), scope.system, scope.expires_at


async def _moment(transaction: Transaction) -> datetime:
    return transaction.at


@pytest.fixture
def moving_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The database's clock cannot be moved: a scope is compiled for the moment that its transaction claims to be at."""

    async def at_its_moment(transaction: Transaction, principal: Principal, action: Action) -> AccessScope:
        return await compile_scope(transaction, principal, action, at=transaction.at)

    monkeypatch.setattr(compile, "compile_scope", at_its_moment)
    yield


@pytest.mark.usefixtures("moving_clock")
def test_a_kept_scope_is_the_fresh_one(stage: Stage) -> None:
    machine = type("KeptHere", (Kept,), {"stage": stage})
    run_state_machine_as_test(machine, settings=settings(STEADY, max_examples=20, stateful_step_count=15))
