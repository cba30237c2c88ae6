"""Casbin decides. An enforcer is made for one question, loaded with the party's rules only, and thrown away."""

from collections.abc import Iterable
from pathlib import Path

import casbin
from casbin.model import Model
from casbin.persist import Adapter

from app.domain.access import Action, PartyRules

MODEL = (Path(__file__).parents[2] / "policies" / "model.conf").read_text()
REQUESTED = "requested"


class RowsAdapter(Adapter):  # type: ignore[misc]  # pycasbin carries no types
    """Loads the few rules that concern one party and one thing asked for. It never writes: rules change as rows."""

    def __init__(self, known: PartyRules, resources: Iterable[str]) -> None:
        self._known, self._resources = known, set(resources)

    def load_policy(self, model: Model) -> None:
        """Fill `model`; called by Casbin."""
        for rule in self._known.rules:
            if rule.resource in self._resources:
                model.add_policy("p", "p", [rule.subject, rule.resource, rule.action.value, rule.effect.value])
        for edge in self._known.edges:
            model.add_policy("g", "g", [edge.member, edge.container])
        for resource in self._resources:
            model.add_policy("g", "g2", [REQUESTED, resource])


def permits(known: PartyRules, action: Action, resources: Iterable[str]) -> bool:
    """Casbin's verdict on one party doing `action` to what belongs to `resources` (an access class, a collection)."""
    model = Model()
    model.load_model_from_text(MODEL)
    enforcer = casbin.Enforcer(model, RowsAdapter(known, resources))
    # Left alone, Casbin looks ten steps up and no further: a deny held through a longer chain would be lost.
    enforcer.rm_map["g"].max_hierarchy_level = len(known.edges) + 1
    return bool(enforcer.enforce(known.subject, REQUESTED, action.value))
