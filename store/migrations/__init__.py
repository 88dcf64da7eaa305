"""How did the tables come to be as they are? Alembic's steps, applied by store.migrate only."""
