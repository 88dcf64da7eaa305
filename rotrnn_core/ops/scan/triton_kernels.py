"""How does one GPU thread scan? Time inside the thread, lanes along channels, eigenvalue and carry in registers.

A program is one warp on 32 neighbouring pairs of one sequence, or of one chunk of it. It holds 2^LEVELS steps in
registers, as a tile whose rows all lie in every thread, and fetches the next tile before it works on this one, so that
the memory never waits for the arithmetic. An eigenvalue is the unevaluated sum of two float32 numbers: rounded to one,
it would drift by 1e-4 over the memory of a slow pair. What lies beyond the end is read as zero and not written.

Triton may take a tile apart and put it together again without moving anything between threads as long as each lane
holds one column; it would give four neighbouring columns to a lane if it knew that rows are aligned, so it is not told.
"""

# mypy: ignore-errors
# What triton compiles is a language of its own: its values have no Python types.

import triton
import triton.language as tl

LANES = tl.constexpr(32)
UNTOLD = ["drive", "states", "earlier"]


@triton.jit
def _place(time, length, WIDTH: tl.constexpr, REVERSE: tl.constexpr, LEVELS: tl.constexpr):
    """This program's sequence, chunk and pairs, which of the pairs there are, and where the chunk's first tile lies."""
    step: tl.constexpr = -WIDTH if REVERSE else WIDTH
    blocks: tl.constexpr = (WIDTH // 2 + LANES - 1) // LANES
    row = (tl.program_id(0) // blocks).to(tl.int64)
    chunk = tl.program_id(1)
    columns = (tl.program_id(0) % blocks) * LANES + tl.arange(0, LANES)
    first = time - 1 - chunk * length if REVERSE else chunk * length
    steps = tl.arange(0, 2**LEVELS)
    tile = (row * time + first) * WIDTH + steps[:, None] * step + columns[None, :]
    return row, chunk, columns, columns < WIDTH // 2, steps, tile


@triton.jit
def _load(at, steps, left, inside, WIDTH: tl.constexpr):
    """Real and imaginary parts of a tile, of which `left` steps are there."""
    present = (steps < left)[:, None] & inside[None, :]
    return tl.load(at, mask=present, other=0.0), tl.load(at + WIDTH // 2, mask=present, other=0.0)


@triton.jit
def _rows(tile, LEVELS: tl.constexpr):
    """The rows of a tile of 2^LEVELS, by halving it again and again."""
    rows = (tile.to(tl.float32),)
    for level in tl.static_range(LEVELS):
        halves = ()
        for i in tl.static_range(2**level):
            pair = tl.reshape(rows[i], [2, 2 ** (LEVELS - 1 - level), LANES])
            first, second = tl.split(tl.permute(pair, (1, 2, 0)))
            halves = halves + (first, second)  # noqa: RUF005 - triton knows no unpacking
        rows = halves
    return rows


@triton.jit
def _tile(rows, LEVELS: tl.constexpr):
    """Rows of (1, LANES) as one tile; undoes `_rows`."""
    for level in tl.static_range(LEVELS):
        joined = ()
        for i in tl.static_range(2 ** (LEVELS - 1 - level)):
            pair = tl.permute(tl.join(rows[2 * i], rows[2 * i + 1]), (2, 0, 1))
            joined = joined + (tl.reshape(pair, [2 ** (level + 1), LANES]),)  # noqa: RUF005
        rows = joined
    return rows[0]


@triton.jit
def _eigenvalue(eigenvalues, columns, inside, pairs: tl.constexpr):
    """Real and imaginary part, then what float32 leaves of both, each (1, LANES)."""
    return (
        tl.load(eigenvalues + columns, mask=inside, other=0.0)[None, :],
        tl.load(eigenvalues + pairs + columns, mask=inside, other=0.0)[None, :],
        tl.load(eigenvalues + 2 * pairs + columns, mask=inside, other=0.0)[None, :],
        tl.load(eigenvalues + 3 * pairs + columns, mask=inside, other=0.0)[None, :],
    )


@triton.jit
def _scan_tile(re, im, x_re, x_im, eigenvalue, LEVELS: tl.constexpr):
    """All states of a tile of drive, from the one before it: h[t] = eigenvalue * h[t-1] + x[t], small part first."""
    high_re, high_im, low_re, low_im = eigenvalue
    xs_re = _rows(x_re, LEVELS)
    xs_im = _rows(x_im, LEVELS)
    states_re = ()
    states_im = ()
    for i in tl.static_range(2**LEVELS):
        small_re = xs_re[i] + low_re * re - low_im * im
        small_im = xs_im[i] + low_im * re + low_re * im
        turned_re = small_re + high_re * re - high_im * im
        im = small_im + high_im * re + high_re * im
        re = turned_re
        states_re = states_re + (re,)  # noqa: RUF005
        states_im = states_im + (im,)  # noqa: RUF005
    return states_re, states_im


@triton.jit(do_not_specialize_on_alignment=UNTOLD)
def ends_kernel(
    drive, ends, eigenvalues, time, length, WIDTH: tl.constexpr, REVERSE: tl.constexpr, LEVELS: tl.constexpr
):
    """The state at the end of every chunk but the last, each from a zero state.

    Args:
        drive: (batch, time, WIDTH).
        ends: (batch, chunks - 1, WIDTH), float32; written.
        eigenvalues: Real and imaginary part, then what float32 leaves of both, (4, WIDTH / 2), float32.
        time, length: Steps in a sequence and in a chunk of it, a multiple of 2^LEVELS.
        WIDTH, REVERSE: Numbers in a step; whether the scan begins at the last one.
    """
    pairs: tl.constexpr = WIDTH // 2
    depth: tl.constexpr = 2**LEVELS
    onward: tl.constexpr = -WIDTH * depth if REVERSE else WIDTH * depth
    row, chunk, columns, inside, steps, tile = _place(time, length, WIDTH, REVERSE, LEVELS)
    eigenvalue = _eigenvalue(eigenvalues, columns, inside, pairs)
    at = drive + tile
    re = tl.full([1, LANES], 0.0, tl.float32)
    im = tl.full([1, LANES], 0.0, tl.float32)
    x_re, x_im = _load(at, steps, length, inside, WIDTH)
    for done in range(0, length, depth):
        at += onward
        next_re, next_im = _load(at, steps, length - done - depth, inside, WIDTH)
        states_re, states_im = _scan_tile(re, im, x_re, x_im, eigenvalue, LEVELS)
        re = states_re[depth - 1]
        im = states_im[depth - 1]
        x_re = next_re
        x_im = next_im
    end = ends + (row * tl.num_programs(1) + chunk) * WIDTH + columns[None, :]
    tl.store(end, re, mask=inside[None, :])
    tl.store(end + pairs, im, mask=inside[None, :])


@triton.jit(do_not_specialize_on_alignment=UNTOLD)
def scan_kernel(
    drive,
    states,
    earlier,
    start,
    ends,
    eigenvalues,
    jumps,
    correlations,
    time,
    length,
    STARTED: tl.constexpr,
    CORRELATED: tl.constexpr,
    WIDTH: tl.constexpr,
    REVERSE: tl.constexpr,
    LEVELS: tl.constexpr,
):
    """Every state of one chunk, from the start and the ends of the chunks before it.

    Args:
        drive: (batch, time, WIDTH).
        states: Like drive; written.
        earlier: Like drive; read only where CORRELATED, one step ahead of the scan.
        start: State before the first step, (batch, WIDTH); read only where STARTED.
        ends: What `ends_kernel` has written.
        eigenvalues: Real and imaginary part, then what float32 leaves of both, (4, WIDTH / 2), float32.
        jumps: The eigenvalues to the power `length`, (2, WIDTH / 2), float64.
        correlations: Sums over the chunk of the products of equal and of crossed components of each state and the
            value of `earlier` one step on, (batch, chunks, WIDTH), float64; written where CORRELATED.
        time, length: Steps in a sequence and in a chunk of it, a multiple of 2^LEVELS.
        WIDTH, REVERSE: Numbers in a step; whether the scan begins at the last one.
    """
    pairs: tl.constexpr = WIDTH // 2
    depth: tl.constexpr = 2**LEVELS
    onward: tl.constexpr = -WIDTH * depth if REVERSE else WIDTH * depth
    row, chunk, columns, inside, steps, tile = _place(time, length, WIDTH, REVERSE, LEVELS)
    chunks = tl.num_programs(1)
    eigenvalue = _eigenvalue(eigenvalues, columns, inside, pairs)

    jump_re = tl.load(jumps + columns, mask=inside, other=0.0)
    jump_im = tl.load(jumps + pairs + columns, mask=inside, other=0.0)
    carry_re = tl.full([LANES], 0.0, tl.float64)
    carry_im = tl.full([LANES], 0.0, tl.float64)
    if STARTED:
        carry_re += tl.load(start + row * WIDTH + columns, mask=inside, other=0.0).to(tl.float64)
        carry_im += tl.load(start + row * WIDTH + pairs + columns, mask=inside, other=0.0).to(tl.float64)
    for before in range(chunk):
        end = ends + (row * (chunks - 1) + before) * WIDTH + columns
        turned_re = jump_re * carry_re - jump_im * carry_im + tl.load(end, mask=inside, other=0.0)
        carry_im = jump_im * carry_re + jump_re * carry_im + tl.load(end + pairs, mask=inside, other=0.0)
        carry_re = turned_re
    re = carry_re.to(tl.float32)[None, :]
    im = carry_im.to(tl.float32)[None, :]

    equal = tl.full([LANES], 0.0, tl.float64)
    crossed = tl.full([LANES], 0.0, tl.float64)
    left = tl.minimum(time - chunk * length, length)
    # The last step of all has none ahead of it.
    known = tl.minimum(time - chunk * length - 1, length)
    at = drive + tile
    to = states + tile
    ahead = earlier + tile + onward // depth
    x_re, x_im = _load(at, steps, left, inside, WIDTH)
    if CORRELATED:
        h_re, h_im = _load(ahead, steps, known, inside, WIDTH)
    for done in range(0, left, depth):
        at += onward
        next_re, next_im = _load(at, steps, left - done - depth, inside, WIDTH)
        states_re, states_im = _scan_tile(re, im, x_re, x_im, eigenvalue, LEVELS)
        re = states_re[depth - 1]
        im = states_im[depth - 1]
        tile_re = _tile(states_re, LEVELS)
        tile_im = _tile(states_im, LEVELS)
        present = (steps < left - done)[:, None] & inside[None, :]
        tl.store(to, tile_re.to(states.dtype.element_ty), mask=present)
        tl.store(to + pairs, tile_im.to(states.dtype.element_ty), mask=present)
        to += onward
        x_re = next_re
        x_im = next_im
        if CORRELATED:
            ahead += onward
            equal += tl.sum(tile_re * h_re.to(tl.float32) + tile_im * h_im.to(tl.float32), axis=0)
            crossed += tl.sum(tile_im * h_re.to(tl.float32) - tile_re * h_im.to(tl.float32), axis=0)
            h_re, h_im = _load(ahead, steps, known - done - depth, inside, WIDTH)
    if CORRELATED:
        sums = correlations + (row * chunks + chunk) * WIDTH + columns
        tl.store(sums, equal, mask=inside)
        tl.store(sums + pairs, crossed, mask=inside)
