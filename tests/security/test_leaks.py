"""What the service login could read besides rows, and what the logs, the spool and the metrics say: nothing secret."""

import secrets
from pathlib import Path

import httpx
import psycopg
import pytest
from support.api import Api
from support.postgres import RunDatabase
from support.server import ServerProcess
from support.world import World

PROTECTED = ("documents", "document_versions", "document_texts", "originals", "chunks")
CONTENT = PROTECTED[2:]


@pytest.fixture
async def analysed(world: World, postgres_database: RunDatabase) -> RunDatabase:
    """A database with a published document, whose statistics have been gathered."""
    await world.collection("vault")
    for number in range(12):
        await world.add("vault", f"page-{number}.txt", f"Quicksilver page {number}: the password of the day is heron.")
    await world.publish("vault")
    with postgres_database.superuser() as connection:
        connection.execute("ANALYZE")
    return postgres_database


@pytest.mark.parametrize("view", ["pg_stats", "pg_stats_ext", "pg_stats_ext_exprs"])
def test_the_planner_s_statistics_of_what_is_protected_are_closed(analysed: RunDatabase, view: str) -> None:
    with analysed.service() as service:
        seen = service.execute(f"SELECT tablename FROM {view} WHERE schemaname = 'public'".encode()).fetchall()
    assert {str(table) for (table,) in seen} & set(PROTECTED) == set()


def test_no_statistics_of_terms_and_vectors_are_gathered_at_all(analysed: RunDatabase) -> None:
    with analysed.superuser() as superuser:
        kept = superuser.execute(
            "SELECT attname FROM pg_stats WHERE tablename = 'chunk_index' AND attname = ANY(%s)",
            [["embedding", "terms", "weights", "keys"]],
        ).fetchall()
    assert kept == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT rolpassword FROM pg_authid",
        "SELECT passwd FROM pg_shadow",
        "SELECT * FROM pg_statistic",
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT pg_ls_dir('.')",
        "SELECT lo_import('/etc/passwd')",
        "COPY chunks TO PROGRAM 'cat'",
        "COPY chunks TO '/tmp/chunks'",
        "ALTER TABLE chunks NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY chunks_select ON chunks",
        "CREATE POLICY mine ON chunks USING (true)",
        "SET SESSION AUTHORIZATION postgres",
        "ALTER ROLE CURRENT_USER BYPASSRLS",
        "CREATE SCHEMA mine",
        "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE EXTENSION pg_stat_statements",
        "CREATE STATISTICS mine ON class_id, document_id FROM chunks",
        "DELETE FROM tokens",
        "UPDATE tokens SET subject = 'owner'",
        "DELETE FROM documents",
        "DELETE FROM editions",
    ],
)
def test_the_service_login_can_do_no_more_than_it_must(postgres_database: RunDatabase, statement: str) -> None:
    with postgres_database.service() as service, pytest.raises(psycopg.Error) as refused:
        service.execute(statement.encode())
    assert isinstance(
        refused.value,
        psycopg.errors.InsufficientPrivilege | psycopg.errors.SyntaxError | psycopg.errors.InvalidParameterValue,
    ), refused.value


def test_turning_row_security_off_is_an_error_and_shows_nothing(analysed: RunDatabase) -> None:
    with analysed.service() as service:
        service.execute("SET row_security = off")
        for table in CONTENT:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                service.execute(f"SELECT content FROM {table}".encode())


def test_other_sessions_queries_are_not_shown(analysed: RunDatabase) -> None:
    with analysed.superuser() as superuser, analysed.service() as service:
        superuser.execute("SELECT 'a secret of the superuser'")
        seen = service.execute("SELECT query FROM pg_stat_activity WHERE usename = 'postgres'").fetchall()
    assert {query for (query,) in seen} <= {"<insufficient privilege>", "", None}


def test_nothing_secret_is_written_beside_the_tables(api: Api) -> None:
    said = ("query", "text", "title", "name", "argument", "label", "sql")
    marks, server = {name: f"zq{secrets.token_hex(6)}" for name in said}, api.server
    made = _provoke(api, marks)
    with server.superuser() as superuser:
        superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'stacks_login'")
    api.search("owner", f"After the connections were cut: {marks['query']}")
    keys = {path.read_text().strip() for path in (server.data_dir / "secrets").iterdir() if path.is_file()}
    written = {"metrics": httpx.get(f"{server.url}/metrics").text, "log": server.log.read_text(errors="replace")}
    written |= {str(path): path.read_text(errors="replace") for path in _beside_the_tables(server)}

    assert any(path.endswith("postgres.log") for path in written), written.keys()
    for place, text in written.items():
        for what in (*marks.values(), *api.tokens.values(), made, *keys):
            assert what not in text, f"{place} tells {what}"


def _provoke(api: Api, marks: dict[str, str]) -> str:
    """Calls of every kind, good and bad, with marks in whatever a caller can say; a token that was made."""
    shelf = api.shelf()
    api.add(shelf, f"{marks['name']}.txt", f"The word is {marks['text']}.", title=marks["title"], labels=marks["label"])
    api.job(api.upload(shelf, f"{marks['name']}.pdf", f"%PDF-1.7 {marks['text']}"))
    api.job(api.upload(shelf, f"{marks['name']}.docx", b"PK\x03\x04" + marks["text"].encode()))
    api.search("owner", f"Where is {marks['query']}?")
    api.search("general", marks["query"], collection=shelf)
    api.search("owner", marks["query"], collection=marks["argument"])
    api.search("owner", marks["query"], limit=marks["argument"])
    api.search("owner", marks["query"] + "\x00", **{marks["argument"]: 1})
    api.search(f"stk_{marks['argument']}", marks["query"])
    api(
        "owner",
        "POST",
        "/search",
        content=f'{{"query": "{marks["query"]}'.encode(),
        headers={"content-type": "application/json"},
    )
    api("owner", "GET", f"/documents/{marks['argument']}")
    api("owner", "GET", f"/calls?cursor={marks['argument']}&outcome={marks['argument']}")
    api("owner", "POST", "/collections", json={"slug": f"'; DROP TABLE {marks['sql']}; --", "title": marks["title"]})
    api("owner", "POST", "/collections", json={"slug": shelf, "title": marks["title"]})
    api("owner", "POST", "/grants", json={"principal": marks["argument"], "action": "search", "collection": shelf})
    return api.mint(by="owner")


def _beside_the_tables(server: ServerProcess) -> list[Path]:
    """Every file of the data directory but the secrets, the demo's tokens, and what Postgres keeps as tables."""
    kept_apart = ("secrets", "demo", "models")
    tables = ("base", "global", "pg_wal", "pg_xact", "pg_multixact", "pg_subtrans")
    return [
        path
        for path in server.data_dir.rglob("*")
        if path.is_file()
        and path.relative_to(server.data_dir).parts[0] not in kept_apart
        and not (set(path.relative_to(server.data_dir).parts) & set(tables))
    ]
