"""Styles of a Word document: which are headings, which hide their text."""

from dataclasses import dataclass, field

from app.ingest.parse.ooxml import Attributes, Package

_TITLE_LEVEL = 1


@dataclass(slots=True)
class _Style:
    name: str = ""
    based_on: str | None = None
    outline: int | None = None
    hidden: bool | None = None


@dataclass(slots=True)
class Styles:
    """What the style ids of one document mean."""

    _styles: dict[str, _Style] = field(default_factory=dict)

    def heading_level(self, style_id: str | None) -> int | None:
        """1 to 9 for a heading style or one based on it, else None."""
        for style in self._chain(style_id):
            if style.name == "title":
                return _TITLE_LEVEL
            if style.name.startswith("heading ") and style.name[8:].isdigit():
                return int(style.name[8:])
            if style.outline is not None:
                return style.outline + 1 if style.outline < 9 else None
        return None

    def is_title(self, style_id: str | None) -> bool:
        """Whether the style is the document's title."""
        return any(style.name == "title" for style in self._chain(style_id))

    def is_hidden(self, style_id: str | None) -> bool:
        """Whether text of that style is hidden."""
        return next((style.hidden for style in self._chain(style_id) if style.hidden is not None), False)

    def _chain(self, style_id: str | None) -> list[_Style]:
        chain: list[_Style] = []
        while style_id and (style := self._styles.get(style_id)) and len(chain) < 20:
            chain.append(style)
            style_id = style.based_on
        return chain


def read_styles(package: Package, document_part: str) -> Styles:
    """The styles part of `document_part`; without one, nothing is a heading."""
    part = package.related(document_part, "styles")
    styles: dict[str, _Style] = {}
    current = _Style()

    def start(tag: str, attributes: Attributes) -> None:
        nonlocal current
        name = tag.rpartition(" ")[2]
        value = word_value(attributes)
        match name:
            case "style":
                current = styles.setdefault(word_value(attributes, "styleId"), _Style())
            case "name":
                current.name = value.lower()
            case "basedOn":
                current.based_on = value
            case "outlineLvl" if value.isdigit():
                current.outline = int(value)
            case "vanish":
                current.hidden = is_on(attributes)

    if part:
        package.walk(part, start)
    return Styles(styles)


def word_value(attributes: Attributes, name: str = "val") -> str:
    """An attribute of Word's own namespace, whichever of its two names the file uses."""
    return next((value for key, value in attributes.items() if key.rpartition(" ")[2] == name), "")


def is_on(attributes: Attributes) -> bool:
    """A switch without a value is on."""
    return word_value(attributes).lower() not in ("0", "false", "off", "none")
