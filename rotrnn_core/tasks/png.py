"""How does a PNG become shades of gray? Unpacked and unfiltered here: 8 bits a channel, not interlaced.

Source: Portable Network Graphics, ISO/IEC 15948.
"""

import struct
import zlib
from pathlib import Path
from typing import no_type_check

import numpy as np

from rotrnn_core.tasks.compiling import compiled
from rotrnn_core.tasks.dataset import Array
from rotrnn_core.tasks.errors import BadData

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""By colour type: gray, colour, gray with opacity, colour with opacity."""
MOST_PIXELS = 1 << 22


def read_gray(path: Path) -> Array:
    """The picture as unsigned bytes, (height, width); colours by their luma, opacity left aside.

    Raises:
        BadData: It is empty, damaged, or of a kind that these data sets do not have.
    """
    content = path.read_bytes()
    if not content:
        raise BadData(path, "empty picture")
    if not content.startswith(SIGNATURE):
        raise BadData(path, "not a PNG picture")
    try:
        width, height, channels, packed = _chunks(content)
        most = height * (width * channels + 1)
        raw = zlib.decompressobj().decompress(packed, most)
    except (ValueError, struct.error, zlib.error) as error:
        raise BadData(path, f"damaged picture ({error})") from error
    if len(raw) < most:
        raise BadData(path, "picture cut short")
    rows = np.frombuffer(raw, dtype=np.uint8).reshape(height, width * channels + 1).copy()
    if rows[:, 0].max() > 4:
        raise BadData(path, f"damaged picture (filter {rows[:, 0].max()})")
    _unfilter(rows, channels)
    pixels = rows[:, 1:].reshape(height, width, channels)
    if channels < 3:
        gray: Array = pixels[:, :, 0]
        return gray
    weighted = pixels[:, :, :3].astype(np.uint32) @ np.array([19595, 38470, 7471], dtype=np.uint32)
    return ((weighted + (1 << 15)) >> 16).astype(np.uint8)


def _chunks(content: bytes) -> tuple[int, int, int, bytes]:
    """Width, height, channels and packed rows."""
    packed = []
    shape = None
    place = len(SIGNATURE)
    while place < len(content):
        length, kind = struct.unpack_from(">I4s", content, place)
        data = content[place + 8 : place + 8 + length]
        if len(data) < length:
            raise ValueError("cut short")
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data)
            if depth != 8 or colour not in CHANNELS or interlaced:
                raise ValueError(f"{depth} bits of colour type {colour}{', interlaced' if interlaced else ''}")
            if not 0 < width * height <= MOST_PIXELS:
                raise ValueError(f"{width} x {height} pixels")
            shape = width, height, CHANNELS[colour]
        elif kind == b"IDAT":
            packed.append(data)
        place += 12 + length
    if shape is None:
        raise ValueError("no header")
    return *shape, b"".join(packed)


@no_type_check
@compiled
def _unfilter(rows: Array, channels: int) -> None:
    """Undo each row's filter in place; the first byte of a row is its filter."""
    for y in range(rows.shape[0]):
        kind = rows[y, 0]
        for x in range(1, rows.shape[1]):
            left = np.int64(rows[y, x - channels]) if x > channels else 0
            up = np.int64(rows[y - 1, x]) if y > 0 else 0
            corner = np.int64(rows[y - 1, x - channels]) if y > 0 and x > channels else 0
            if kind == 0:
                guess = 0
            elif kind == 1:
                guess = left
            elif kind == 2:
                guess = up
            elif kind == 3:
                guess = (left + up) // 2
            else:
                base = left + up - corner
                far_left, far_up, far_corner = abs(base - left), abs(base - up), abs(base - corner)
                if far_left <= far_up and far_left <= far_corner:
                    guess = left
                elif far_up <= far_corner:
                    guess = up
                else:
                    guess = corner
            rows[y, x] = (np.int64(rows[y, x]) + guess) & 255
