"""Where the server is and with which tokens the suite asks."""

from pathlib import Path

import msgspec

from acceptance.questions import SuiteError


class Holder(msgspec.Struct, frozen=True):
    """One principal: its name at the server, and its bearer token, which is never printed."""

    subject: str
    token: str

    def __repr__(self) -> str:
        return f"Holder({self.subject!r})"


class Credentials(msgspec.Struct, frozen=True):
    """The file that the demo writes: addresses, and principals by role."""

    url: str
    mcp_url: str
    principals: dict[str, Holder]

    def token(self, role: str) -> str:
        """The bearer token of `role`. Raises `SuiteError` for a role the file does not know."""
        if role not in self.principals:
            known = ", ".join(sorted(self.principals))
            raise SuiteError(f"no principal named {role} in the credentials; known: {known}")
        return self.principals[role].token


def load_credentials(path: Path) -> Credentials:
    """Read the credentials file. Raises `SuiteError` when it is missing or misshapen; never quotes its contents."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Credentials)
    except OSError as error:
        raise SuiteError(f"{path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise SuiteError(f"{path}: {error}") from error
