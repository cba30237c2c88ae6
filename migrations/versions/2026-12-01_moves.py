"""A file that was moved is still the same document: its source id may follow it."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("GRANT UPDATE (source_id) ON documents TO stacks_service")


def downgrade() -> None:
    op.execute("REVOKE UPDATE (source_id) ON documents FROM stacks_service")
