"""By what is the input scaled, so that the state keeps its length?

White input of unit variance through h[t] = decay A h[t-1] + xi B u[t], with A orthogonal, gives
E||h[t]||^2 = xi^2 ||B||_F^2 (1 - decay^(2t)) / (1 - decay^2).
"""

import torch
from jaxtyping import Float
from torch import Tensor


def stationary_scale(nu: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """sqrt(1 - decay^2) for decay = exp(-nu), exact also where the decay is close to 1.

    Args:
        nu: -log(decay), positive, any shape.

    Returns:
        The factor that makes the stationary variance 1, in (0, 1), nu's shape; its gradient is finite for nu > 0.
    """
    return torch.sqrt(-torch.expm1(-2 * nu))


def head_norm(B: Float[Tensor, "n_heads d_head d_model"]) -> Float[Tensor, " n_heads"]:
    """Frobenius norm of each head's input matrix, sqrt(tr(B^T B)), in float64; 1 where the matrix is zero.

    A head whose B is zero has no state to normalise: with norm 1 its state stays zero, and so does its gradient.
    """
    norm = torch.linalg.vector_norm(B, dim=(1, 2), dtype=torch.float64)
    return torch.where(norm == 0, torch.ones_like(norm), norm)
