"""Casbin decides. An enforcer is made for one party's questions, loaded with that party's rules, and thrown away."""

from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import casbin
from casbin.model import Model
from casbin.persist import Adapter

from app.domain.access import Action, PartyRules

MODEL = (Path(__file__).parents[2] / "policies" / "model.conf").read_text()
K = TypeVar("K", bound=Hashable)


class RowsAdapter(Adapter):  # type: ignore[misc]  # pycasbin carries no types
    """Loads the few rules that concern one party and the things asked for. It never writes: rules change as rows.

    `things` names each thing, as Casbin is to see it, with every resource that it belongs to.
    """

    def __init__(self, known: PartyRules, things: Mapping[str, Iterable[str]]) -> None:
        self._known, self._things = known, things

    def load_policy(self, model: Model) -> None:
        """Fill `model`."""
        links = [(thing, resource) for thing, resources in self._things.items() for resource in resources]
        resources = {resource for _, resource in links}
        for rule in self._known.rules:
            if rule.resource in resources:
                model.add_policy("p", "p", [rule.subject, rule.resource, rule.action.value, rule.effect.value])
        for edge in self._known.edges:
            model.add_policy("g", "g", [edge.member, edge.container])
        for thing, resource in links:
            model.add_policy("g", "g2", [thing, resource])


def verdicts(known: PartyRules, action: Action, things: Mapping[K, Iterable[str]]) -> dict[K, bool]:
    """Casbin's verdicts on one party doing `action` to things, each given by all the resources it belongs to."""
    named = {key: f"requested:{number}" for number, key in enumerate(things)}
    model = Model()
    model.load_model_from_text(MODEL)
    RowsAdapter(known, {named[key]: resources for key, resources in things.items()}).load_policy(model)
    enforcer = casbin.Enforcer(model)  # given an adapter it would load into a deep copy, at twice the cost
    # Left alone, Casbin looks ten steps up and no further: a deny held through a longer chain would be lost.
    enforcer.rm_map["g"].max_hierarchy_level = len(known.edges) + 1
    enforcer.build_role_links()
    return {key: bool(enforcer.enforce(known.subject, name, action.value)) for key, name in named.items()}


def permits(known: PartyRules, action: Action, resources: Iterable[str]) -> bool:
    """Casbin's verdict on one party doing `action` to what belongs to `resources` (an access class, a collection)."""
    return verdicts(known, action, {None: resources})[None]
