"""Random small corpora and policies, drawn by Hypothesis, so that a leak shrinks to the fewest documents and rules."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from app.domain.access import GRANTABLE, Action, Effect

# `ann` and `bob` own a collection each. `reader` is in a role that is in `staff`; `eve` is nobody in particular.
OWNERS = {"north": "ann", "south": "bob"}
CALLERS = ("reader", "reader", "reader", "reader", "bob", "bob", "eve")
SUBJECTS = (("role", "staff"), ("role", "interns"), ("principal", "reader"), ("principal", "bob"))
LABELS = ("pay", "board")
# Few words, so that visible and hidden documents share some; each document has one more that is its own.
WORDS = ("harbour", "lantern", "salary", "tide", "ledger", "pilot", "beacon", "anchor")
OWN = ("quillwort", "zymurgy", "brindlefen", "tessaline", "vorpal", "threnody", "oxbow", "marlin")
FATES = ("published", "published", "published", "revised", "relabelled", "removed", "draft", "failed")

_OF_THE_WHOLE = (Action.MANAGE, Action.AUDIT)


@dataclass(frozen=True, slots=True)
class Paper:
    """One document: where it is, what it says (its own word last), and what becomes of it after its first edition."""

    collection: str
    words: tuple[str, ...]
    labels: tuple[str, ...]
    fate: str

    def text(self, edition: int = 1) -> str:
        """What it says in one edition."""
        said = " ".join(self.words)
        return f"Of the {said}. The {said} of edition {edition}."


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule for several actions; on a collection, a label of it, or the document of that number."""

    subject: tuple[str, str]
    actions: tuple[Action, ...]
    effect: Effect
    collection: str
    label: str | None = None
    paper: int | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents, rules, and who asks."""

    papers: tuple[Paper, ...]
    rules: tuple[Rule, ...]
    caller: str

    def made_rules(self) -> Iterator[tuple[Rule, Action]]:
        """Each rule with each action, but for managing a part and for what would keep an owner from its work."""
        for rule in self.rules:
            for action in rule.actions:
                part = rule.label is not None or rule.paper is not None
                own = rule.effect is Effect.DENY and rule.subject[1] == OWNERS[rule.collection]
                if not own and not (part and action in _OF_THE_WHOLE):
                    yield rule, action


_READING = (Action.SEARCH, Action.OPEN)
_ACTIONS = (
    st.just(_READING) | st.just(_READING) | st.lists(st.sampled_from(GRANTABLE), min_size=1, max_size=2).map(tuple)
)
# The first document is hidden from everybody who is asked about, but for who is made to manage or audit all of north.
SEALED = tuple(
    Rule(subject, tuple(action for action in GRANTABLE if action not in _OF_THE_WHOLE), Effect.DENY, "north", "sealed")
    for subject in (("role", "staff"), ("principal", "bob"))
)
_SLUGS = st.sampled_from(tuple(OWNERS))


def _papers(number: int) -> st.SearchStrategy[Paper]:
    words = st.lists(st.sampled_from(WORDS), min_size=2, max_size=6)
    return st.builds(
        Paper,
        _SLUGS,
        words.map(lambda drawn: (*drawn, OWN[number])),
        st.sampled_from(((), (), ("pay",), ("board",), ("board", "pay"))),
        st.sampled_from(FATES),
    )


@st.composite
def _rules(draw: st.DrawFn, papers: tuple[Paper, ...]) -> Rule:
    subject, actions = draw(st.sampled_from(SUBJECTS)), draw(_ACTIONS)
    effect = draw(st.sampled_from((Effect.ALLOW, Effect.ALLOW, Effect.DENY)))
    kind = draw(st.sampled_from(("collection", "label", "document")))
    if kind == "document":
        number = draw(st.integers(1, len(papers) - 1))
        return Rule(subject, actions, effect, papers[number].collection, paper=number)
    label = draw(st.sampled_from(LABELS)) if kind == "label" else None
    return Rule(subject, actions, effect, draw(_SLUGS), label)


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    """A corpus of a few documents, of which the caller may see some, all or none."""
    drawn = [draw(_papers(number)) for number in range(1, draw(st.integers(4, len(OWN))))]
    sealed = _papers(0).filter(lambda paper: paper.fate != "relabelled")
    papers = (replace(draw(sealed), collection="north", labels=("sealed",)), *drawn)
    first = Rule(
        SUBJECTS[draw(st.integers(0, 2))], _READING, Effect.ALLOW, draw(_SLUGS), draw(st.none() | st.just("pay"))
    )
    rules = [*SEALED, first, *draw(st.lists(_rules(papers), max_size=5))]
    return Corpus(papers, tuple(rules), draw(st.sampled_from(CALLERS)))
