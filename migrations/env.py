"""Alembic's environment: every migration runs as the owner login, with a lock and a statement timeout.

Started from `app.db.migrate`, which passes an open connection; there is no offline mode, since roles and
row-level security cannot be reviewed apart from the server they are made on.
"""

from alembic import context
from sqlalchemy import text

LOCK_TIMEOUT = "5s"
STATEMENT_TIMEOUT = "10min"


def run() -> None:
    connection = context.config.attributes["connection"]
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'"))
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


run()
