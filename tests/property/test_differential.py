"""Five evaluators of the rules, written apart, agree on random cases.

Compiled scope, check of one resource, Casbin on the whole policy, row-level security under a real ticket, and the
oracle. `python tests/benchmarks/differential.py` does the same on a hundred thousand cases and more.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import pytest
from hypothesis import Phase, given, seed, settings
from property.policies import STEADY, Given, policies
from property.stage import Stage, Tally, judge

from app.authz import casbin_policy
from app.domain.access import Action, Effect, PartyRules

POLICIES = 30
K = TypeVar("K", bound=Hashable)


def test_five_evaluators_agree(stage: Stage) -> None:
    tally = Tally()

    @seed(20261130)
    @settings(STEADY, max_examples=POLICIES)
    @given(policies())
    def agree(policy: Given) -> None:
        assert judge(stage, policy, tally) == []

    agree()
    print(f"{tally.cases} cases, {tally.by_five} by all five, {tally.permitted} permitted")
    assert tally.by_five > 2500
    assert tally.permitted > tally.cases // 10, "hardly anything was permitted: that proves little"


def test_an_engine_that_forgets_denies_is_found_out(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = casbin_policy.verdicts

    def lenient(known: PartyRules, action: Action, things: Mapping[K, Iterable[str]]) -> dict[K, bool]:
        allows = tuple(rule for rule in known.rules if rule.effect is Effect.ALLOW)
        return honest(PartyRules(known.subject, known.bounds, known.edges, allows), action, things)

    monkeypatch.setattr(casbin_policy, "verdicts", lenient)

    @seed(1)
    @settings(STEADY, max_examples=POLICIES, phases=[Phase.generate])
    @given(policies())
    def agree(policy: Given) -> None:
        assert judge(stage, policy, Tally()) == []

    with pytest.raises(AssertionError, match="'checked': True"):
        agree()
