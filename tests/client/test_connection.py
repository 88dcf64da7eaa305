"""Are address and token found where they should be, and does a token go nowhere else?"""

import json
from pathlib import Path

import pytest

from client.connection import find, read_stack
from client.errors import APIUnreachable


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """A folder with a local stack in it."""
    folder = tmp_path / "project"
    (folder / ".rotbench").mkdir(parents=True)
    token_file = folder / ".rotbench" / "token"
    token_file.write_text("local token\n")
    described = {"api_url": "http://127.0.0.1:8123", "dashboard_url": None, "token_file": str(token_file), "pid": 1}
    (folder / ".rotbench" / "stack.json").write_text(json.dumps(described))
    return folder


def test_without_anything_the_nearest_local_stack_is_used_also_from_a_folder_below(local: Path) -> None:
    below = local / "a" / "b"
    below.mkdir(parents=True)
    for start in (local, below):
        found = find(environment={}, start=start)
        assert (found.url, found.token) == ("http://127.0.0.1:8123", "local token")
        assert found.url_source == str(local / ".rotbench" / "stack.json")


def test_arguments_go_before_the_environment_and_the_environment_before_the_stack(local: Path) -> None:
    environment = {"ROTBENCH_URL": "http://env:1/", "ROTBENCH_TOKEN": "env token"}
    by_environment = find(environment=environment, start=local)
    by_argument = find("http://arg:2", "arg token", environment=environment, start=local)
    assert (by_environment.url, by_environment.token, by_environment.url_source) == (
        "http://env:1",
        "env token",
        "ROTBENCH_URL",
    )
    assert (by_argument.url, by_argument.token, by_argument.token_source) == ("http://arg:2", "arg token", "argument")


def test_the_token_of_a_local_stack_goes_to_no_other_address(local: Path) -> None:
    assert find("http://elsewhere:8123", environment={}, start=local).token is None
    assert find(environment={"ROTBENCH_URL": "http://elsewhere"}, start=local).token is None
    assert find("http://127.0.0.1:8123/", environment={}, start=local).token == "local token"


def test_where_no_api_is_known_the_error_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(APIUnreachable, match=r"rotbench up.*ROTBENCH_URL"):
        find(environment={}, start=tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"api_url": null}', "null"])
def test_a_stack_file_that_is_not_whole_is_no_stack(tmp_path: Path, content: str) -> None:
    (tmp_path / "stack.json").write_text(content)
    assert read_stack(tmp_path / "stack.json") is None


def test_a_stack_whose_token_cannot_be_read_has_none(local: Path) -> None:
    (local / ".rotbench" / "token").unlink()
    assert find(environment={}, start=local).token is None
