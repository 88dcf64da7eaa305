"""Which settings does the API process have, and what are they called in the environment?"""

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Read once, in main, from variables that begin with ROTBENCH_."""

    model_config = SettingsConfigDict(env_prefix="ROTBENCH_", extra="ignore", hide_input_in_errors=True)

    database_url: str = Field(min_length=1)
    """postgresql+psycopg://user:password@host:port/database."""
    api_pool_size: int = Field(10, ge=1, le=200)
    """Database connections; under load twice as many, which then stay open."""
    api_statement_timeout_s: float = Field(30.0, gt=0)
    """Longest database statement of a request."""
    api_max_body_bytes: int = Field(1_000_000, ge=1_000)
    """Longest request body."""
    lease_s: float = Field(60.0, gt=0)
    """A worker whose last beat is older than this is of unknown state."""
    artifacts: str | None = None
    """Where the workers' checkpoints lie, a folder or a URL that fsspec knows; without it they are not offered."""

    @field_validator("artifacts")
    @classmethod
    def _without_slash(cls, place: str | None) -> str | None:
        return place.rstrip("/") or None if place else None
