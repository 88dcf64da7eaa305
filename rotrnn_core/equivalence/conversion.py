"""How does an LRU become a RotRNN, and a RotRNN an LRU? The paper's theorem as conversions of cells and networks.

An LRU of N complex channels is a RotRNN of N heads of two real numbers, with its own scale on the input; a RotRNN head
of n real numbers is n / 2 complex channels that share one decay and one normaliser. Both keep outputs and states.

Source: RotRNN, arXiv:2407.07239, the section on the relation to LRU; derived anew here.
"""

import copy
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rotrnn_core.layers import LRU, Cell, RotRNN
from rotrnn_core.model import Block, Network
from rotrnn_core.ops.normaliser import stationary_scale
from rotrnn_core.ops.rotation import rotation_from


class ScaledRotRNN(RotRNN):
    """A RotRNN with first_step "authors" whose input scale is free: xi = exp(xi_log), (n_heads,).

    RotRNN's own xi depends on B by its norm alone, so that no B gives an LRU's trained normaliser.

    Args:
        d_model: Width of input and output.
        d_state: Real numbers in the state of one direction; divisible by 2 * n_heads.
        n_heads: Parts of the state with a decay and an input scale of their own.
        bidirectional: Run the same recurrence backwards in time as well.
        generator: Source of the initial values; torch's own when absent.
    """

    def __init__(
        self,
        d_model: int,
        d_state: int,
        n_heads: int,
        *,
        bidirectional: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            d_model, d_state, n_heads, bidirectional=bidirectional, first_step="authors", generator=generator
        )
        self.xi_log = nn.Parameter(torch.log(super().input_scale().detach()))

    def input_scale(self) -> Tensor:
        return torch.exp(self.xi_log)

    def recurrence_parameters(self) -> list[nn.Parameter]:
        """M, the phases, the decays and the input scales."""
        return [*super().recurrence_parameters(), self.xi_log]


def rotrnn_from_lru(lru: LRU) -> ScaledRotRNN:
    """The RotRNN with heads of two that is this LRU: same outputs, same states, in the same order.

        decay = |lambda|, phase = arg lambda, B_h = [Re b; Im b], C_h = [Re c, -Im c], P = I, xi = exp(gamma_log)

    A "tied" normaliser is taken at its value now; trained further, the RotRNN's scale is free.
    """
    channels = lru.d_state // 2
    rotrnn = ScaledRotRNN(
        lru.d_model, lru.d_state, channels, bidirectional=lru.directions == 2, generator=torch.Generator()
    )
    shape = (lru.d_model, lru.directions, channels)
    C = torch.stack([lru.C_re.view(shape), -lru.C_im.view(shape)], dim=-1)
    tied = torch.log(stationary_scale(torch.exp(lru.nu_log.double())))
    _fill(
        rotrnn,
        like=lru,
        M=torch.zeros_like(rotrnn.M),
        theta_log=lru.theta_log.unsqueeze(-1),
        gamma_log=lru.nu_log,
        xi_log=tied if lru.normaliser == "tied" else lru.gamma_log,
        B=torch.stack([lru.B_re, lru.B_im], dim=1),
        C=C.transpose(1, 2).flatten(1),
        D=lru.D,
    )
    return rotrnn


def lru_from_rotrnn(rotrnn: RotRNN) -> LRU:
    """The LRU that is this RotRNN: same outputs, and the states of each head in the eigenbasis of its rotation.

    Head h becomes d_head / 2 channels with lambda = decay_h exp(i phase) and gamma_log = log xi_h, all of them alike.
    B and C take in P. For heads of two P commutes with the rotation and is left out, so that the states are the same
    numbers; for larger heads `states_in_rotrnn_basis` gives the RotRNN's.

    Raises:
        ValueError: first_step is "exact": an LRU scales every input alike, as "authors" does.
    """
    if rotrnn.first_step == "exact":
        raise ValueError(
            "first_step is 'exact': it scales the first input by itself, and an LRU cannot; the RotRNN with "
            "first_step 'authors' has an LRU"
        )
    lru = LRU(rotrnn.d_model, rotrnn.d_state, bidirectional=rotrnn.directions == 2, generator=torch.Generator())
    pairs = rotrnn.d_head // 2
    P = _eigenbasis(rotrnn)
    B = (P.mT @ rotrnn.B.double()).view(rotrnn.d_state // 2, 2, rotrnn.d_model)
    C = rotrnn.C.double().view(rotrnn.d_model, rotrnn.n_heads, rotrnn.directions, rotrnn.d_head) @ P
    C = C.transpose(1, 2).reshape(rotrnn.d_model, -1, 2)
    # An angle is the same up to whole turns; its logarithm needs a positive one.
    phases = torch.remainder(rotrnn.phases(), 2 * math.pi) if hasattr(rotrnn, "theta") else rotrnn.phases()
    phases = phases.clamp(min=torch.finfo(rotrnn.B.dtype).tiny)
    _fill(
        lru,
        like=rotrnn,
        nu_log=rotrnn.gamma_log.repeat_interleave(pairs),
        theta_log=torch.log(phases).flatten(),
        gamma_log=torch.log(rotrnn.input_scale()).repeat_interleave(pairs),
        B_re=B[:, 0],
        B_im=B[:, 1],
        C_re=C[..., 0],
        C_im=-C[..., 1],
        D=rotrnn.D,
    )
    return lru


def states_in_rotrnn_basis(
    states: Float[Tensor, "batch time states"], rotrnn: RotRNN
) -> Float[Tensor, "batch time states"]:
    """The states of `lru_from_rotrnn(rotrnn)` as the RotRNN itself has them, in its order: h = P z for each head."""
    pairs = rotrnn.d_head // 2
    z = states.view(*states.shape[:2], rotrnn.n_heads, pairs, rotrnn.directions, 2).transpose(-3, -2).flatten(-2)
    h = z @ _eigenbasis(rotrnn).to(states.dtype).mT
    return h.flatten(-3)


def network_from(network: Network) -> Network:
    """The network with every LRU cell as a RotRNN and every RotRNN cell as an LRU; all else is copied as it is.

    Raises:
        ValueError: A cell that has no equivalent.
    """
    converted = copy.deepcopy(network)
    for block in converted.blocks:
        assert isinstance(block, Block)
        block.cell = cell_from(block.cell)
    return converted


def cell_from(cell: Cell) -> Cell:
    """The LRU of a RotRNN, or the RotRNN of an LRU.

    Raises:
        ValueError: A cell that has no equivalent.
    """
    if isinstance(cell, LRU):
        return rotrnn_from_lru(cell)
    if isinstance(cell, RotRNN):
        return lru_from_rotrnn(cell)
    raise ValueError(f"the cell is {type(cell).__name__}: only LRU and RotRNN have an equivalent in each other")


def _eigenbasis(rotrnn: RotRNN) -> Float[Tensor, "n_heads d_head d_head"]:
    """P in float64; the identity for heads of two, where P commutes with the rotation."""
    M = rotrnn.M.detach().double()
    return rotation_from(torch.zeros_like(M) if rotrnn.d_head == 2 else M)


def _fill(cell: Cell, *, like: Cell, **values: Tensor) -> None:
    """Set every parameter, on the device and in the dtype of another cell."""
    cell.to(next(like.parameters()))
    own = dict(cell.named_parameters())
    assert own.keys() == values.keys()
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(values[name].reshape(parameter.shape))
