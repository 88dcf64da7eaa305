"""Is the theorem seen at work? Cells and trained networks are converted both ways, and what changes is measured."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from rotrnn_core.config import LRUConfig, ModelConfig, RotRNNConfig, TrainingConfig
from rotrnn_core.equivalence.conversion import cell_from, network_from, states_in_rotrnn_basis
from rotrnn_core.equivalence.equations import by_equations
from rotrnn_core.layers import LRU, Cell, RotRNN
from rotrnn_core.model import Block, Network
from rotrnn_core.training.optimiser import make_optimiser, set_rates

BOUND = {"float64": 1e-11, "float32": 1e-4}
"""What rounding may come to, as a share of the greatest value; more than that is another function."""
D_MODEL, D_STATE, DEPTH, TOKENS, LENGTH = 16, 32, 3, 8, 8


@dataclass(frozen=True)
class Difference:
    """How far a model and its conversion lie apart on the same input.

    Args:
        conversion: What was converted into what.
        dtype: "float64" or "float32".
        outputs: Greatest absolute difference of the outputs over their greatest absolute value. Of a cell by itself:
            between the papers' equations and the layers, before and after the conversion.
        states: The same of the hidden states, over all layers.
        trained_steps: Updates before the conversion; 0 for a cell by itself.
        loss: Training loss of the last of them, in nats; none for a cell by itself.
    """

    conversion: str
    dtype: str
    outputs: float
    states: float
    trained_steps: int = 0
    loss: float | None = None

    @property
    def is_rounding(self) -> bool:
        """Whether nothing but rounding changed."""
        return max(self.outputs, self.states) <= BOUND[self.dtype]


def demonstrate(*, time: int = 512, batch: int = 4, seed: int = 0, steps: int = 60) -> tuple[Difference, ...]:
    """Convert cells and trained networks both ways and measure what changes: nothing beyond rounding.

    Every LRU has a normaliser away from its initial value; every RotRNN has first_step "authors". The networks learn
    to name the first token of a sequence, in float32, and are then compared in both precisions on longer ones.

    Args:
        time: Length of the sequences on which both are compared.
        batch: Number of sequences.
        seed: Of the initial values and the inputs.
        steps: Updates of each network before it is converted.
    """
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(batch, time, D_MODEL, generator=generator)
    differences = [
        _compare_cells(title, cell.to(dtype), u.to(dtype))
        for title, cell in _cells(generator)
        for dtype in (torch.float32, torch.float64)
    ]
    tokens = torch.randint(TOKENS, (batch, time), generator=generator)
    for title, network in _networks(generator):
        loss = _train(network, steps, generator)
        differences += [
            _compare_networks(title, network.to(dtype), tokens, steps, loss) for dtype in (torch.float32, torch.float64)
        ]
    return tuple(sorted(differences, key=lambda difference: difference.dtype, reverse=True))


def _cells(generator: torch.Generator) -> list[tuple[str, LRU | RotRNN]]:
    learned = LRU(D_MODEL, D_STATE, generator=generator)
    nn.init.normal_(learned.gamma_log, generator=generator)
    tied = LRU(D_MODEL, D_STATE, normaliser="tied", bidirectional=True, generator=generator)
    return [
        ("LRU, learned normaliser, into RotRNN with heads of 2", learned),
        ("LRU, tied normaliser, bidirectional, into RotRNN with heads of 2", tied),
        ("RotRNN with heads of 2 into LRU", RotRNN(D_MODEL, D_STATE, 16, first_step="authors", generator=generator)),
        (
            "RotRNN with heads of 8, bidirectional, into LRU",
            RotRNN(D_MODEL, D_STATE, 4, first_step="authors", bidirectional=True, generator=generator),
        ),
    ]


def _networks(generator: torch.Generator) -> list[tuple[str, Network]]:
    lru = ModelConfig(cell=LRUConfig(), d_model=D_MODEL, d_state=D_STATE, n_layers=DEPTH)
    cell = RotRNNConfig(n_heads=4, first_step="authors")
    rotrnn = ModelConfig(cell=cell, d_model=D_MODEL, d_state=D_STATE, n_layers=DEPTH, bidirectional=True)
    return [
        (
            f"trained network of {DEPTH} layers, {title}",
            Network(config, tokens=TOKENS, classes=TOKENS, generator=generator),
        )
        for title, config in (("LRU into RotRNN", lru), ("RotRNN, bidirectional, into LRU", rotrnn))
    ]


def _train(network: Network, steps: int, generator: torch.Generator) -> float:
    """The loss of the last of some updates, each on fresh sequences of which the first token is asked for."""
    rates = TrainingConfig(steps=steps, warmup_steps=0, learning_rate=1e-2, recurrence_learning_rate=1e-2)
    optimiser = make_optimiser(network, rates)
    loss = torch.zeros(())
    for step in range(1, steps + 1):
        tokens = torch.randint(TOKENS, (32, LENGTH), generator=generator)
        optimiser.zero_grad()
        loss = functional.cross_entropy(network(tokens), tokens[:, 0])
        loss.backward()  # type: ignore[no-untyped-call]
        set_rates(optimiser, step, rates)
        optimiser.step()
    return loss.item()


@torch.no_grad()
def _compare_cells(title: str, cell: LRU | RotRNN, u: Tensor) -> Difference:
    """Both cells, as layers and as equations."""
    other = cell_from(cell)
    assert isinstance(other, LRU | RotRNN)
    outputs, states = by_equations(cell, u)
    found = [(cell(u), cell.states(u))]
    found += [(y, _states_like(cell, h)) for y, h in (by_equations(other, u), (other(u), other.states(u)))]
    return Difference(
        conversion=title,
        dtype=_name(u.dtype),
        outputs=max(_apart(outputs, y) for y, _ in found),
        states=max(_apart(states, h) for _, h in found),
    )


@torch.no_grad()
def _compare_networks(title: str, network: Network, tokens: Tensor, steps: int, loss: float) -> Difference:
    network.eval()
    other = network_from(network)
    cells = [block.cell for block in network.blocks if isinstance(block, Block)]
    layers = zip(cells, network.states(tokens), other.states(tokens), strict=True)
    return Difference(
        conversion=title,
        dtype=_name(next(network.parameters()).dtype),
        outputs=_apart(network(tokens), other(tokens)),
        states=max(_apart(own, _states_like(cell, its)) for cell, own, its in layers),
        trained_steps=steps,
        loss=loss,
    )


def _states_like(cell: Cell, states: Tensor) -> Tensor:
    return states_in_rotrnn_basis(states, cell) if isinstance(cell, RotRNN) else states


def _apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / a.abs().max())


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
