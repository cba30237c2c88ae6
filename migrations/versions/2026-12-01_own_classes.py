"""A document with rules of its own may get other labels: its next class is another row, and the earlier ones stay, so
that what was so before is explained by the labels of then.
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DROP INDEX access_classes_by_document")
    op.execute("CREATE INDEX access_classes_by_document ON access_classes (document_id) WHERE document_id IS NOT NULL")


def downgrade() -> None:
    """Fails, and changes nothing, where a document has had more than one class of its own."""
    op.execute("DROP INDEX access_classes_by_document")
    op.execute(
        "CREATE UNIQUE INDEX access_classes_by_document ON access_classes (document_id) WHERE document_id IS NOT NULL"
    )
