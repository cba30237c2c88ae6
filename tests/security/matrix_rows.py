"""Who gets which answer from which route: one row a route (or a case of it), one column a caller.

Where a name stands in braces, the stage has (or makes, for names that begin with `new_`) what it names.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CALLERS = ("nobody", "forged", "general", "restricted", "foreign", "owner", "auditor", "tester", "admin")
API = "/api/v1"
_PLACE = re.compile(r"\{(\w+):\w+\}")


@dataclass(frozen=True, slots=True)
class Row:
    """One way to call one route. `expected` holds a status for each of `CALLERS`."""

    route: str
    expected: tuple[str, ...]
    query: str = ""
    json: Any = None
    files: Mapping[str, tuple[str, str]] | None = None
    case: str = ""
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.route.split()[0]

    @property
    def path(self) -> str:
        """The path with names in the place of parameters."""
        return _PLACE.sub(lambda found: "{" + self.places[found[1]] + "}", self.route.split()[1])

    @property
    def operation(self) -> str:
        """What the call log calls the route."""
        return _PLACE.sub(r"{\1}", self.route)

    @property
    def name(self) -> str:
        """The row's own name."""
        return f"{self.route} {self.case}".strip()


def _row(route: str, expected: str, case: str = "", **how: Any) -> Row:
    known = {name: how.pop(name) for name in ("query", "json", "files") if name in how}
    statuses = tuple(expected.split())
    assert len(statuses) == len(CALLERS), route
    return Row(route.replace(" /", f" {API}/", 1), statuses, case=case, places=how, **known)


_TEXT = "/documents/{document_id:uuid}/versions/{version:int}"
_DIFF = "/collections/{slug:str}/versions/{number:int}/diff"
_PURGE = "/collections/{slug:str}/purges/{purge_id:uuid}"
_GRANT = {"principal": "guest", "action": "search", "collection": "{shelf}"}
_WHO = "action=search&collection={shelf}"
_OF_GENERAL = f"{_WHO}&principal=general"
_FILE = {"file": ("{new_slug}.txt", "News of {new_slug}.")}

# `general` reads the shelf but for what is labelled closed, `restricted` all of it, `foreign` owns another collection;
# `tester` confirms the purges of the archive.
# 404 to the outsider, for whom it does not exist; 403 to the insider who may see but not do.
ROWS = (
    #                                                   none bad general restr. foreign owner auditor tester admin
    _row("POST /search", "                              401  401 200     200    403     200   403     403    403",
         "of one collection", json={"query": "tides", "collection": "{shelf}"}),
    _row("POST /search", "                              401  401 200     200    200     200   403     403    403",
         "of all", json={"query": "tides"}),
    _row("POST /search", "                              401  401 403     403    403     403   403     403    403",
         "of no collection", json={"query": "tides", "collection": "{new_slug}"}),
    _row("GET /collections", "                          401  401 200     200    200     200   200     200    200"),
    _row("POST /collections", "                         401  401 403     403    403     201   403     403    201",
         json={"slug": "{new_slug}", "title": "New"}),
    _row("GET /collections/{slug:str}", "               401  401 200     200    404     200   404     404    200",
         slug="shelf"),
    _row("PUT /collections/{slug:str}/custodians", "    401  401 403     403    404     200   403     404    200",
         slug="new_shelf", json={"owner": "heir"}),
    _row("GET /collections/{slug:str}/documents", "     401  401 200     200    404     200   403     404    200",
         slug="shelf"),
    _row("POST /collections/{slug:str}/documents", "    401  401 403     403    404     202   403     404    202",
         slug="new_shelf", files=_FILE),
    _row("POST /collections/{slug:str}/publish", "      401  401 403     403    404     200   403     404    200",
         slug="new_drafts"),
    _row("GET /collections/{slug:str}/versions", "      401  401 200     200    404     200   403     404    200",
         slug="shelf"),
    _row(f"GET {_DIFF}", "                              401  401 200     200    404     200   403     404    200",
         slug="shelf", number="one"),
    _row("POST /collections/{slug:str}/rollback", "     401  401 403     403    404     200   403     404    200",
         slug="new_editions", json={"corpus_version": 1}),
    _row("GET /collections/{slug:str}/purges", "        401  401 403     403    404     200   403     200    403",
         slug="archive"),
    _row("POST /collections/{slug:str}/purges", "       401  401 403     403    404     201   403     409    403",
         slug="archive", json={"document_id": "{new_superseded}", "version": 1, "reason": "matrix"}),
    _row(f"POST {_PURGE}/confirm", "                    401  401 403     403    404     403   403     200    403",
         slug="archive", purge_id="new_purge"),
    _row(f"DELETE {_PURGE}", "                          401  401 403     403    404     200   403     200    403",
         slug="archive", purge_id="new_purge"),
    _row("GET /documents/{document_id:uuid}", "         401  401 200     200    404     200   404     404    200",
         "open", document_id="open"),
    _row("GET /documents/{document_id:uuid}", "         401  401 404     200    404     200   404     404    200",
         "closed", document_id="closed"),
    _row("GET /documents/{document_id:uuid}", "         401  401 404     404    404     404   404     404    404",
         "unknown", document_id="nothing"),
    _row("DELETE /documents/{document_id:uuid}", "      401  401 403     403    404     204   404     404    204",
         "open", document_id="new_document"),
    _row("DELETE /documents/{document_id:uuid}", "      401  401 404     403    404     204   404     404    204",
         "closed", document_id="new_closed"),
    _row(f"GET {_TEXT}", "                              401  401 200     200    404     200   404     404    404",
         "open", document_id="open", version="one"),
    _row(f"GET {_TEXT}", "                              401  401 404     200    404     200   404     404    404",
         "closed", document_id="closed", version="one"),
    _row(f"GET {_TEXT}/text", "                         401  401 200     200    404     200   404     404    404",
         "open", document_id="open", version="one"),
    _row(f"GET {_TEXT}/text", "                         401  401 404     200    404     200   404     404    404",
         "closed", document_id="closed", version="one"),
    _row(f"GET {_TEXT}/original", "                     401  401 200     200    404     200   404     404    404",
         "open", document_id="open", version="one"),
    _row(f"GET {_TEXT}/original", "                     401  401 404     200    404     200   404     404    404",
         "closed", document_id="closed", version="one"),
    _row("GET /jobs/{job_id:uuid}", "                   401  401 200     200    404     200   404     404    200",
         "open", job_id="job_of_open"),
    _row("GET /jobs/{job_id:uuid}", "                   401  401 404     200    404     200   404     404    200",
         "closed", job_id="job_of_closed"),
    _row("POST /jobs/{job_id:uuid}/cancel", "           401  401 403     403    404     409   404     404    409",
         "open", job_id="job_of_open"),
    _row("POST /jobs/{job_id:uuid}/cancel", "           401  401 404     403    404     409   404     404    409",
         "closed", job_id="job_of_closed"),
    _row("POST /jobs/{job_id:uuid}/retry", "            401  401 403     403    404     409   404     404    409",
         "open", job_id="job_of_open"),
    _row("POST /jobs/{job_id:uuid}/retry", "            401  401 404     403    404     409   404     404    409",
         "closed", job_id="job_of_closed"),
    _row("GET /collections/{slug:str}/jobs", "          401  401 403     403    404     200   403     404    200",
         slug="shelf"),
    _row("GET /roles", "                                401  401 403     403    200     200   403     403    200"),
    _row("POST /roles", "                               401  401 403     403    201     201   403     403    201",
         json={"name": "{new_slug}"}),
    _row("GET /roles/{name:str}/members", "             401  401 403     403    403     200   403     403    200",
         name="role"),
    _row("PUT /roles/{name:str}/members", "             401  401 403     403    403     200   403     403    200",
         name="new_role", json={"principals": ["guest"]}),
    _row("GET /groups/members", "                       401  401 403     403    403     403   403     403    200",
         query="group=crew"),
    _row("PUT /groups/members", "                       401  401 403     403    403     403   403     403    200",
         json={"group": "{new_slug}", "principals": ["guest"]}),
    _row("GET /grants", "                               401  401 200     200    200     200   200     200    200"),
    _row("POST /grants", "                              401  401 403     403    404     201   403     404    201",
         "on a collection", json=_GRANT),
    _row("POST /grants", "                              401  401 403     403    404     201   403     404    201",
         "on a document", json={**_GRANT, "document": "{new_document}"}),
    _row("DELETE /grants/{grant_id:uuid}", "            401  401 404     404    404     200   404     404    200",
         grant_id="new_grant"),
    _row("GET /tokens", "                               401  401 200     200    200     200   200     200    200"),
    _row("POST /tokens", "                              401  401 201     201    201     201   201     201    201",
         "own", json={"name": "matrix"}),
    _row("POST /tokens", "                              401  401 403     403    403     403   403     403    201",
         "another's", json={"name": "matrix", "subject": "guest"}),
    _row("DELETE /tokens/{token_id:str}", "             401  401 404     404    404     204   404     404    204",
         "of the owner", token_id="new_token"),
    _row("GET /access/explain", "                       401  401 403     403    404     200   200     404    200",
         "of a collection", query=_OF_GENERAL),
    _row("GET /access/explain", "                       401  401 403     403    404     200   200     404    200",
         "of a document in its collection", query=f"{_OF_GENERAL}&document={{closed}}"),
    _row("GET /access/explain", "                       401  401 403     403    404     404   404     404    404",
         "of an unknown document in a collection", query=f"{_OF_GENERAL}&document={{nothing}}"),
    _row("GET /access/explain", "                       401  401 404     404    404     200   200     404    200",
         "of a document", query="action=search&principal=general&document={closed}"),
    _row("GET /access/preview", "                       401  401 403     403    200     200   200     403    200",
         query="principal=general"),
    _row("POST /access/preview", "                      401  401 403     403    404     200   403     403    200",
         json={"principal": "guest", "grant": _GRANT}),
    _row("GET /access/who", "                           401  401 403     403    404     200   200     404    200",
         "of a collection", query=_WHO),
    _row("GET /access/who", "                           401  401 404     404    404     200   200     404    200",
         "of a document", query="document={closed}"),
    _row("GET /calls", "                                401  401 403     403    200     200   200     403    403"),
    _row("GET /calls/{call_id:uuid}", "                 401  401 403     403    404     200   200     403    403",
         "of the owner", call_id="call"),
)  # fmt: skip

_PAGE = "GET /documents/{document_id:uuid}/versions/{version:int}"
_ALL = "200 200 200 200 200 200 200 200 200"
_NONE = "404 404 404 404 404 404 404 404 404"


def _elsewhere(route: str, expected: str, case: str = "", **how: Any) -> Row:
    """A row outside the API's own root."""
    known = {name: how.pop(name) for name in ("query", "json") if name in how}
    return Row(route, tuple(expected.split()), case=case, places=how, **known)


_LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ELSEWHERE = (
    #                                                   none bad general restr. foreign owner auditor tester admin
    _elsewhere(_PAGE, "                                 401  401 200     200    404     200   404     404    404",
               "open", document_id="open", version="one"),
    _elsewhere(_PAGE, "                                 401  401 404     200    404     200   404     404    404",
               "closed", document_id="closed", version="one"),
    _elsewhere("POST /mcp", "                           401  401 200     200    200     200   200     200    200",
               json=_LIST_TOOLS),
    _elsewhere("GET /mcp", "                            401  401 405     405    405     405   405     405    405"),
    _elsewhere("DELETE /mcp", "                         401  401 405     405    405     405   405     405    405"),
    _elsewhere("GET /health/live", _ALL),
    _elsewhere("GET /health/ready", _ALL),
    _elsewhere("GET /metrics", _ALL),
    _elsewhere("GET /.well-known/oauth-protected-resource", _ALL),
    _elsewhere("GET /.well-known/oauth-protected-resource/mcp", _ALL),
    _elsewhere("GET /schema", _ALL),
    _elsewhere("GET /schema/openapi.json", _ALL),
    _elsewhere("GET /schema/{path:str}", _NONE, path="new_slug"),
)  # fmt: skip


def _options() -> tuple[Row, ...]:
    """What the framework adds to each path: it tells the methods to whoever has a credential, and of /schema to all."""
    rows = {}
    for row in (*ROWS, *ELSEWHERE):
        path = row.route.split()[1]
        places = dict.fromkeys(row.places, "nothing")
        told = ("204", "204") if path.startswith("/schema") else ("401", "401")
        rows[path] = Row(f"OPTIONS {path}", told + ("204",) * 7, places={**places, "version": "one", "number": "one"})
    del rows["/mcp"]
    return tuple(rows.values())


OPTIONS = _options()
# Every tool, with the status of its envelope, and the arguments of each case.
TOOLS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    # none   bad    general restr. foreign owner  auditor tester admin
    ("search_documents", {"query": "tides", "collection": "{shelf}"},
     "401    401    ok      ok     denied  ok     denied  denied denied"),
    ("search_documents", {"query": "tides"},
     "401    401    ok      ok     empty   ok     denied  denied denied"),
    ("search_documents", {"query": "tides", "collection": "{new_slug}"},
     "401    401    denied  denied denied  denied denied  denied denied"),
)  # fmt: skip
