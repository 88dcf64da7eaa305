"""What is an S4 layer? A diagonal plus low-rank system per channel, discretised; a convolution, or a recurrence.

    x' = (Lambda - P P^H) x + B u,   y = 2 Re(C x) + D u       for each channel, one of each conjugate pair kept

Source: S4, arXiv:2111.00396, and the authors' code, GitHub state-spaces/s4.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rotrnn_core.cells import S4Config
from rotrnn_core.layers.channels import ChannelCell
from rotrnn_core.notation import CellState, Input, Inputs
from rotrnn_core.ops import dplr
from rotrnn_core.ops.complex import Complex, from_side_by_side
from rotrnn_core.ops.hippo import legs, legs_eigenbasis, low_rank
from rotrnn_core.ops.pairs import to_heads_order, to_scan_order


class S4(ChannelCell):
    """The S4 cell, (batch, time, d_model) to the same, with n = d_state / (2 d_model) complex states per channel.

    Parameters: those of ChannelCell and P_re, P_im (d_model, n), in all d_state (3 + directions) + 2 d_model numbers.
    Where the paper writes a state of N, n = N / 2. C is that of the recurrence itself, so that the layer is the same
    function at every length; the authors train C (I - A^L) for one length L.

    Args:
        d_model: Width of input and output: the number of systems.
        d_state: Real numbers in the state of one direction, all channels together; divisible by 2 d_model.
        bidirectional: Run the same systems backwards in time as well; the step itself counts in both directions.
        dt_min: Least initial step size.
        dt_max: Greatest initial step size; there is one for each channel, drawn log-uniformly.
        generator: Source of the initial values; torch's own when absent.

    Raises:
        ValueError: A value that cannot be right; the text holds it.
    """

    def __init__(
        self,
        d_model: int,
        d_state: int,
        *,
        bidirectional: bool = False,
        dt_min: float = 0.001,
        dt_max: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        S4Config(dt_min=dt_min, dt_max=dt_max).check_sizes(d_model, d_state)
        order = d_state // d_model
        basis = legs_eigenbasis(order).upper_half()
        super().__init__(
            d_model,
            d_state,
            frequency=basis.frequency,
            B=basis.enter(legs(order)[1]),
            bidirectional=bidirectional,
            dt_min=dt_min,
            dt_max=dt_max,
            generator=generator,
        )
        P = basis.enter(low_rank(order))
        self.P_re, self.P_im = self.on_each_channel(P.re), self.on_each_channel(P.im)

    def system(self) -> dplr.System:
        """The systems in continuous time, float64, from the parameters as they are now."""
        P = Complex(self.P_re.double(), self.P_im.double())
        return dplr.System(Lambda=self.diagonal(), P=P, B=self.input_vector(), step=self.step_sizes())

    def kernel(self, time: int, C: Complex) -> Float[Tensor, "d_model time"]:
        return dplr.kernel_by_resolvent(self.system(), C, time)

    def direction_states(self, u: Inputs, *, reverse: bool) -> Float[Tensor, "batch time d_state"]:
        return to_heads_order(dplr.run(self.system(), u, reverse=reverse)).flatten(-2)

    def next_state(self, u_t: Input, h: CellState | None) -> CellState:
        if h is None:
            h = u_t.new_zeros(len(u_t), self.d_state)
        before = from_side_by_side(to_scan_order(h.double().view(len(h), self.d_model, 2 * self.n)))
        after = dplr.advance(self.system(), before, u_t.double()).side_by_side()
        return to_heads_order(after).flatten(-2).to(u_t.dtype)

    def recurrence_parameters(self) -> list[nn.Parameter]:
        """Lambda, P and the step sizes."""
        return [*super().recurrence_parameters(), self.P_re, self.P_im]
