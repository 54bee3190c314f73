"""The catalog's tables, revision by revision. `revisions.py` runs them; there is no alembic.ini."""
