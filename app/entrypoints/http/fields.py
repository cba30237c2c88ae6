"""Kinds of text and time that several bodies share; the schema shows the bounds, the framework refuses the rest."""

from datetime import datetime
from typing import Annotated

import msgspec

from app.domain.access import LABEL

# Without a control character: Postgres takes no NUL, and a terminal or a log line must not be broken up. A `$` alone
# would let a newline through at the end.
Line = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x1f\x7f]*$(?!\n)", max_length=1000)]
Label = Annotated[str, msgspec.Meta(pattern=rf"^{LABEL.pattern}$(?!\n)")]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
