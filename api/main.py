"""Which app does uvicorn serve? `uvicorn api.main:app`, with settings from the environment."""

from api.app import create_app
from api.settings import Settings

app = create_app(Settings())
