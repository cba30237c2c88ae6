"""What import rules cannot say: rules on the syntax trees of `app/`, each shown to catch what it is there for."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "app").rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}

LINES_OF_A_FILE = 350
LINES_OF_A_FUNCTION = 60

# The outermost boundary of every call: a bug must become `internal`, and a row in the log.
BROAD_EXCEPT = Counter({("app/audit/log.py", "serve"): 1})
# Names of logins and databases, and a password's hash, cannot be parameters. Each is quoted by Postgres's own rules.
# procrastinate's statements are constants of its own; they pass one function here.
BUILT_STATEMENTS = Counter(
    {
        ("app/db/migrate.py", "_provision_login"): 4,
        ("app/db/migrate.py", "_set_password"): 1,
        ("app/ingest/delivery.py", "execute_query_all_async"): 1,
    },
)

Finding = tuple[str, int]  # the function it is in (empty: the module itself), and the line
Rule = Callable[[ast.Module], Iterator[Finding]]


def walk(node: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Every node below `node` with the name of the innermost function around it."""
    for child in ast.iter_child_nodes(node):
        inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield child, inner
        yield from walk(child, inner)


def named(node: ast.AST | None) -> str:
    """The last part of a name or dotted name; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def annotations(tree: ast.Module) -> set[int]:
    """The identities of all nodes inside annotations, which build nothing."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(part, ast.AST):
                inside.update(id(below) for below in ast.walk(part))
    return inside


# --- the rules -------------------------------------------------------------------------------------------------------

WAYS_AROUND_A_CONSTRUCTOR = ("__new__", "__class__", "__replace__", "__setattr__", "__reduce__", "__subclasses__")


def builds_scope(tree: ast.Module) -> Iterator[Finding]:
    """`AccessScope` may be imported by its own name and stand in annotations; every other use could build one."""
    harmless = annotations(tree)
    for node, function in walk(tree):
        if id(node) in harmless:
            continue
        used = named(node) == "AccessScope"
        renamed = isinstance(node, ast.alias) and node.name.endswith("AccessScope") and bool(node.asname)
        spelled = isinstance(node, ast.Constant) and node.value == "AccessScope"
        around = named(node) in WAYS_AROUND_A_CONSTRUCTOR
        if used or renamed or spelled or around or _copies_scope(node) or _calls_type_of(node):
            yield function, getattr(node, "lineno", 0)


def _copies_scope(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and node.args and named(node.func) in ("replace", "copy", "deepcopy")):
        return False
    return "scope" in ast.unparse(node.args[0]).lower()


def _calls_type_of(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and named(node.func.func) == "type"


def catches_everything(tree: ast.Module) -> Iterator[Finding]:
    """`except:`, `except Exception`, `except BaseException`, also in a tuple, and `suppress` of the same."""
    for node, function in walk(tree):
        caught: list[ast.expr | None] = []
        if isinstance(node, ast.ExceptHandler):
            caught = [*node.type.elts] if isinstance(node.type, ast.Tuple) else [node.type]
        elif isinstance(node, ast.Call) and named(node.func) == "suppress":
            caught = [*node.args]
        for kind in caught:
            if kind is None or named(kind) in ("Exception", "BaseException"):
                yield function, getattr(node, "lineno", 0)


def builds_statement(tree: ast.Module) -> Iterator[Finding]:
    """SQL is made of literals and of names bound exactly once, at the top of the module, to such literals."""
    constants = _constants(tree)
    for node, function in walk(tree):
        if isinstance(node, ast.alias) and node.name in ("text", "SQL") and node.asname:
            yield function, node.lineno
        if not isinstance(node, ast.Call) or not _takes_sql(node):
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if len(given) != 1 or not _constant(given[0], constants):
            yield function, node.lineno


def _takes_sql(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in ("text", "SQL", "literal_column")
    owner = named(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return (named(call.func), owner) in (("text", "sqlalchemy"), ("text", "sa"), ("SQL", "sql")) or (
        named(call.func) in ("exec_driver_sql", "literal_column")
    )


def _constants(tree: ast.Module) -> set[str]:
    bound = Counter(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    bound.update(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))
    known: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if bound[name] == 1 and len(statement.targets) == 1 and _constant(statement.value, known):
                known.add(name)
    return known


def _constant(node: ast.expr, known: set[str]) -> bool:
    """Whether `node` is the same string in every run."""
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.Name(id=name):
            return name in known
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _constant(left, known) and _constant(right, known)
        case ast.IfExp(body=first, orelse=second):
            return _constant(first, known) and _constant(second, known)
        case ast.JoinedStr(values=parts):
            return all(_constant(part.value if isinstance(part, ast.FormattedValue) else part, known) for part in parts)
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return all(_constant(part, known) for part in [text, *node.args, *(word.value for word in node.keywords)])
        case _:
            return False


def is_long(tree: ast.Module) -> Iterator[Finding]:
    """A function longer than a screen."""
    for node, function in walk(tree):
        lines = (getattr(node, "end_lineno", None) or 0) - getattr(node, "lineno", 0) + 1
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines > LINES_OF_A_FUNCTION:
            yield function, node.lineno


def prints(tree: ast.Module) -> Iterator[Finding]:
    """Standard output belongs to the command line and to MCP over stdio."""
    for node, function in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield function, node.lineno


# --- they hold -------------------------------------------------------------------------------------------------------


def broken(rule: Rule, allowed: Counter[tuple[str, str]] | None = None, but: tuple[str, ...] = ()) -> list[str]:
    """Where `rule` finds more than is `allowed`, and where less: an exception nobody needs any more must go."""
    trees = {name: tree for name, tree in TREES.items() if not name.startswith(but)}
    found = [(name, function, line) for name, tree in trees.items() for function, line in rule(tree)]
    counted = Counter((name, function) for name, function, _ in found)
    wrong = {place for place in counted | (allowed or Counter()) if counted[place] != (allowed or Counter())[place]}
    unused = [f"{name}: {function} needs no exception" for name, function in wrong if not counted[(name, function)]]
    return unused + [f"{name}:{line} {function}" for name, function, line in found if (name, function) in wrong]


def test_the_tree_was_found() -> None:
    assert {"app/bootstrap.py", "app/authz/compile.py", "app/audit/log.py"} <= FILES.keys()


def test_only_authz_builds_an_access_scope() -> None:
    assert broken(builds_scope, but=("app/authz/",)) == []


def test_nothing_is_caught_wholesale() -> None:
    assert broken(catches_everything, BROAD_EXCEPT) == []


def test_every_statement_is_a_constant() -> None:
    assert broken(builds_statement, BUILT_STATEMENTS) == []


def test_functions_and_files_are_short() -> None:
    assert broken(is_long) == []
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    assert {name: length for name, length in lengths.items() if length > LINES_OF_A_FILE} == {}


def test_nothing_prints_but_the_command_line() -> None:
    assert broken(prints, but=("app/entrypoints/cli/",)) == []


def test_the_oracle_stands_alone() -> None:
    """The reference evaluator, once it is there, shares nothing with what it judges."""
    framework = {"sqlalchemy", "psycopg", "litestar", "mcp", "casbin"}
    oracle = TREES.get("app/authz/reference.py", ast.Module([], []))
    assert imported(oracle) & framework == set()


def imported(tree: ast.Module) -> set[str]:
    """The top-level packages that a module imports."""
    whole = {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
    parts = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    return {name.partition(".")[0] for name in whole | parts}


# --- and they see ----------------------------------------------------------------------------------------------------

BAD: list[tuple[Rule, str]] = [
    (builds_scope, "AccessScope(everything)"),
    (builds_scope, "access.AccessScope(everything)"),
    (builds_scope, "class Wide(AccessScope): pass"),
    (builds_scope, "from app.domain.access import AccessScope as Harmless"),
    (builds_scope, "make = AccessScope"),
    (builds_scope, "getattr(access, 'AccessScope')(everything)"),
    (builds_scope, "dataclasses.replace(scope, classes=all_of_them)"),
    (builds_scope, "def f(narrow_scope): return replace(narrow_scope, classes=all_of_them)"),
    (builds_scope, "copy.replace(self._scope, classes=all_of_them)"),
    (builds_scope, "object.__new__(found)"),
    (builds_scope, "object.__setattr__(scope, 'classes', all_of_them)"),
    (builds_scope, "type(scope)(all_of_them)"),
    (builds_scope, "scope.__class__(all_of_them)"),
    (builds_scope, "msgspec.convert(given, AccessScope)"),
    (builds_scope, "msgspec.json.decode(given, type=AccessScope)"),
    (catches_everything, "try: f()\nexcept: pass"),
    (catches_everything, "try: f()\nexcept Exception: raise"),
    (catches_everything, "try: f()\nexcept (ValueError, BaseException) as error: raise"),
    (catches_everything, "try: f()\nexcept builtins.Exception: pass"),
    (catches_everything, "with contextlib.suppress(Exception): f()"),
    (builds_statement, "def f(name): return text(f'SELECT {name}')"),
    (builds_statement, "def f(name): return text('SELECT ' + name)"),
    (builds_statement, "def f(name): return text('SELECT %s' % name)"),
    (builds_statement, "def f(name): return text('SELECT {}'.format(name))"),
    (builds_statement, "def f(statement): return text(statement)"),
    (builds_statement, "S = 'SELECT 1'\nS = given()\ntext(S)"),
    (builds_statement, "S = 'SELECT 1'\ndef f(S): return text(S)"),
    (builds_statement, "sqlalchemy.text(given)"),
    (builds_statement, "text(text=given)"),
    (builds_statement, "from sqlalchemy import text as words"),
    (builds_statement, "connection.exec_driver_sql(given)"),
    (builds_statement, "sql.SQL(given)"),
    (is_long, "def f():\n" + "    x = 1\n" * LINES_OF_A_FUNCTION),
    (is_long, "class A:\n    async def f():\n" + "        x = 1\n" * LINES_OF_A_FUNCTION),
    (prints, "def f(): print('hello')"),
]

GOOD: list[tuple[Rule, str]] = [
    (
        builds_scope,
        "from app.domain.access import AccessScope\ndef f(scope: AccessScope) -> 'AccessScope': return scope",
    ),
    (builds_scope, "name.replace('-', '_')\ndataclasses.replace(section, start=1)"),
    (catches_everything, "try: f()\nexcept (OSError, ValueError): pass"),
    (
        builds_statement,
        "A = 'SELECT 1'\nB = A + ' FROM {x}'\ntext(B.format(x='t'))\ntext(f'{A} FROM t')\nreader.text(by)",
    ),
    (is_long, "def f():\n" + "    x = 1\n" * (LINES_OF_A_FUNCTION - 1)),
    (prints, "console.print('hello')"),
]


@pytest.mark.parametrize(("rule", "snippet"), BAD)
def test_a_rule_sees_what_breaks_it(rule: Rule, snippet: str) -> None:
    assert list(rule(ast.parse(snippet)))


@pytest.mark.parametrize(("rule", "snippet"), GOOD)
def test_a_rule_lets_the_rest_be(rule: Rule, snippet: str) -> None:
    assert not list(rule(ast.parse(snippet)))
