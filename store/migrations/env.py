"""How does Alembic reach the database? Over the connection that store.migrate holds, under its lock."""

from alembic import context

from store.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    compare_type=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
