"""Does the spool keep what it was given, whatever is torn off?"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from worker import spool as spooling
from worker.spool import Spool, SpoolHeld

HEADER = {"run_id": "r", "attempt": 1, "token": "t"}


def lines(spool: Spool) -> list[str]:
    return [entry.line for entry in spool.pending()]


def filled(path: Path, count: int) -> Spool:
    spool = Spool.create(path, HEADER)
    spool.append([("2026-01-01T00:00:00+00:00", json.dumps({"n": n})) for n in range(count)])
    return spool


def test_entries_come_back_in_order_byte_for_byte_and_numbered(tmp_path: Path) -> None:
    odd = '{"text":"\\u2028 \\"record\\":{ \\ud83d\\ude00","x":NaN,"y":-Infinity}'
    spool = Spool.create(tmp_path / "s.jsonl", HEADER)
    spool.append([("a", "{}"), ("b", odd)])
    spool.append([("c", "{}")])
    assert [(entry.sequence, entry.at, entry.line) for entry in spool.pending()] == [
        (1, "a", "{}"),
        (2, "b", odd),
        (3, "c", "{}"),
    ]


def test_what_was_delivered_does_not_come_again(tmp_path: Path) -> None:
    spool = filled(tmp_path / "s.jsonl", 5)
    spool.delivered(spool.pending()[2])
    assert lines(spool) == ['{"n": 3}', '{"n": 4}']
    assert not spool.empty
    spool.delivered(spool.pending()[-1])
    assert spool.empty
    assert spool.pending() == []


def test_every_line_of_the_file_is_json(tmp_path: Path) -> None:
    filled(tmp_path / "s.jsonl", 2)
    assert [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()] == [
        HEADER,
        {"sequence": 1, "at": "2026-01-01T00:00:00+00:00", "record": {"n": 0}},
        {"sequence": 2, "at": "2026-01-01T00:00:00+00:00", "record": {"n": 1}},
    ]


@pytest.mark.parametrize("torn", range(1, 60, 7))
def test_a_torn_last_line_is_left_out_and_the_others_stay(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "s.jsonl"
    filled(path, 3).close()
    os.truncate(path, path.stat().st_size - torn)
    again = Spool.open(path)
    assert again.header == HEADER
    assert lines(again) == ['{"n": 0}', '{"n": 1}']
    again.append([("x", "{}")])
    assert [entry.sequence for entry in again.pending()] == [1, 2, 3]


def test_zeros_at_the_end_as_after_a_power_cut_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    filled(path, 2).close()
    with path.open("ab") as file:
        file.write(b"\0" * 100 + b'\n{"sequence":9,"at":"x","record":{}}\n')
    assert lines(Spool.open(path)) == ['{"n": 0}', '{"n": 1}']


@pytest.mark.parametrize("content", [b"", b'{"run_id":', b"[1]\n", b"nonsense\n"])
def test_a_spool_without_a_whole_header_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError):
        Spool.open(path)


def test_a_disk_that_refuses_leaves_the_earlier_entries_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = filled(tmp_path / "s.jsonl", 2)
    real = os.pwrite

    def half_then_full(descriptor: int, data: bytes, place: int) -> int:
        if len(data) < 20:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[: len(data) // 2], place)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", half_then_full)
        with pytest.raises(OSError, match="No space"):
            spool.append([("x", '{"lost":1}')] * 3)
    spool.append([("x", '{"kept":1}')])
    assert lines(spool) == ['{"n": 0}', '{"n": 1}', '{"kept":1}']
    spool.close()
    assert lines(Spool.open(spool.path)) == ['{"n": 0}', '{"n": 1}', '{"kept":1}']


def test_a_line_longer_than_a_read_comes_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "READ_BYTES", 100)
    long = json.dumps({"profile": [0.1] * 1000})
    spool = Spool.create(tmp_path / "s.jsonl", HEADER)
    spool.append([("a", long), ("b", "{}"), ("c", "{}")])
    seen = []
    while entries := spool.pending():
        seen += [entry.line for entry in entries]
        spool.delivered(entries[-1])
    assert seen == [long, "{}", "{}"]


def test_a_delivered_spool_starts_afresh_when_it_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "REWIND_AFTER_BYTES", 200)
    spool = filled(tmp_path / "s.jsonl", 10)
    spool.delivered(spool.pending()[-1])
    assert spool.path.stat().st_size < 100
    spool.append([("x", "{}")])
    assert [(entry.sequence, entry.line) for entry in spool.pending()] == [(11, "{}")]


def test_a_spool_is_held_by_its_process_alone_and_free_when_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    script = (
        "import sys, time, pathlib; from worker.spool import Spool;"
        f"s = Spool.create(pathlib.Path({str(path)!r}), {{}}); print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(SpoolHeld):
        Spool.open(path)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    Spool.open(path).remove()
    assert not path.exists()
