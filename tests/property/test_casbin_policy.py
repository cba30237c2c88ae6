"""Casbin's verdict on a handful of rules: what the model and the adapter make of them."""

from itertools import pairwise
from uuid import UUID

import pytest

from app.authz.casbin_policy import permits
from app.domain.access import SYSTEM, Action, Edge, Effect, PartyRules, Rule

ANN = "principal:ann"
SHELF, OTHER = "collection:shelf", "collection:other"


def rule(subject: str, effect: Effect = Effect.ALLOW, resource: str = SHELF, action: Action = Action.SEARCH) -> Rule:
    return Rule(UUID(int=0), subject, action, effect, resource, None)


def known(*rules: Rule, edges: tuple[tuple[str, str], ...] = ()) -> PartyRules:
    return PartyRules(ANN, None, tuple(Edge(*edge) for edge in edges), rules)


def chain(hops: int) -> tuple[tuple[str, str], ...]:
    """`ann` in a role, which is in a role, and so on; the last is `role:top`."""
    return tuple(pairwise((ANN, *(f"role:{number}" for number in range(hops - 1)), "role:top")))


def test_no_rule_means_no() -> None:
    assert not permits(known(), Action.SEARCH, [SYSTEM, SHELF])
    assert not permits(known(rule(ANN)), Action.SEARCH, [])


def test_an_allow_permits_that_action_on_that_resource_to_that_subject_alone() -> None:
    assert permits(known(rule(ANN)), Action.SEARCH, [SYSTEM, SHELF])
    assert not permits(known(rule(ANN)), Action.OPEN, [SYSTEM, SHELF])
    assert not permits(known(rule(ANN)), Action.SEARCH, [SYSTEM, OTHER])
    assert not permits(known(rule("principal:bo")), Action.SEARCH, [SHELF])
    assert not permits(known(rule("role:ann")), Action.SEARCH, [SHELF]), "a role of the same name is somebody else"


@pytest.mark.parametrize("resource", [SYSTEM, SHELF])
def test_a_deny_beats_every_allow_in_any_order(resource: str) -> None:
    rules = [rule(ANN), rule(ANN, resource=SYSTEM), rule("role:staff", Effect.DENY, resource)]
    for ordered in (rules, rules[::-1]):
        assert not permits(known(*ordered, edges=((ANN, "role:staff"),)), Action.SEARCH, [SYSTEM, SHELF])


def test_a_deny_on_something_else_changes_nothing() -> None:
    rules = rule(ANN), rule(ANN, Effect.DENY, OTHER), rule(ANN, Effect.DENY, action=Action.OPEN)
    assert permits(known(*rules), Action.SEARCH, [SYSTEM, SHELF])


@pytest.mark.parametrize("star", ["principal:*", "*", "role:*"])
def test_a_star_in_a_name_is_a_star(star: str) -> None:
    assert not permits(known(rule(star)), Action.SEARCH, [SHELF])
    assert not permits(known(rule("role:staff"), edges=((star, "role:staff"),)), Action.SEARCH, [SHELF])
    assert not permits(known(rule(ANN, resource="collection:*")), Action.SEARCH, [SHELF])


@pytest.mark.parametrize("hops", [1, 2, 9, 10, 11, 40])
def test_rules_are_inherited_through_chains_of_any_length(hops: int) -> None:
    assert permits(known(rule("role:top"), edges=chain(hops)), Action.SEARCH, [SHELF])
    denied = known(rule(ANN), rule("role:top", Effect.DENY), edges=chain(hops))
    assert not permits(denied, Action.SEARCH, [SHELF]), "a deny far up the chain must not be lost"


def test_groups_in_a_circle_come_to_an_end() -> None:
    circle = ((ANN, "group:a"), ("group:a", "group:b"), ("group:b", "group:a"), ("group:b", "role:staff"))
    assert permits(known(rule("role:staff"), edges=circle), Action.SEARCH, [SHELF])
    assert not permits(known(rule("role:board"), edges=circle), Action.SEARCH, [SHELF])
