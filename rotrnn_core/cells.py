"""Which cells are there, and what can be chosen of each? One entry makes a cell known everywhere; needs no torch.

A cell is a configuration class here, named once in `CELLS`, and a layer of the same name whose keyword arguments are
the configuration's fields.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rotrnn_core.checks import check_scalars, require


@dataclass(frozen=True)
class CellConfig:
    """What every cell's configuration has: a name, the sizes it fits, and words for people."""

    path: ClassVar[str] = "model.cell"
    title: ClassVar[str]
    summary: ClassVar[str]
    has_state: ClassVar[bool] = True
    """Whether a state of fixed size is carried from one step to the next."""

    name: str

    def __post_init__(self) -> None:
        check_scalars(self)

    @property
    def label(self) -> str:
        """Short name of the variant; what figures group and colour by."""
        return self.name

    def state_unit(self, d_model: int) -> int:
        """The whole number that divides every d_state which the cell can have."""
        return 2

    def check_state(self, d_state: int) -> None:
        """Raise ConfigError unless the state of one direction can have this many real numbers."""
        remedy = "use an even number: each complex channel is two real numbers"
        require(d_state % 2 == 0, "model.d_state", d_state, remedy)

    def check_sizes(self, d_model: int, d_state: int) -> None:
        """Raise ConfigError unless a layer of these sizes can be built."""
        self.check_state(d_state)

    def options(self) -> dict[str, Any]:
        """Every field but the name: the keyword arguments of the cell's layer."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "name"}


@dataclass(frozen=True)
class RotRNNConfig(CellConfig):
    """RotRNN: rotations with one decay per head, normalised input (arXiv:2407.07239)."""

    title: ClassVar[str] = "RotRNN"
    summary: ClassVar[str] = (
        "Rotations with one decay per head and an input scaled so that the hidden state keeps its length."
    )

    name: Literal["rotrnn"] = "rotrnn"
    n_heads: int = 8
    first_step: Literal["exact", "authors"] = "exact"
    init: Literal["log-uniform", "ring"] = "log-uniform"
    decay_min: float = 0.9
    decay_max: float = 0.999
    max_phase: float = 6.28

    def __post_init__(self) -> None:
        super().__post_init__()
        path = self.path
        require(self.n_heads >= 1, f"{path}.n_heads", self.n_heads, "use at least 1 head")
        require(
            self.init == "ring" or self.decay_min >= 1e-9,
            f"{path}.decay_min",
            self.decay_min,
            "log(-log 0) is infinite; the smallest usable value is 1e-9 (init 'ring' takes 0)",
        )
        require(self.decay_min >= 0, f"{path}.decay_min", self.decay_min, "use a value in [0, 1)")
        require(self.decay_max < 1, f"{path}.decay_max", self.decay_max, "use a value below 1")
        require(
            self.decay_min < self.decay_max,
            f"{path}.decay_min",
            self.decay_min,
            f"it must be below decay_max, which is {self.decay_max!r}",
        )
        require(self.max_phase > 0, f"{path}.max_phase", self.max_phase, "use a positive angle in radians")

    @property
    def label(self) -> str:
        """The name, then what differs from the defaults in first step and initialisation."""
        first_step = [] if self.first_step == "exact" else [self.first_step]
        init = [] if self.init == "log-uniform" else [self.init]
        return "-".join([self.name, *first_step, *init])

    def state_unit(self, d_model: int) -> int:
        """A pair in each head."""
        return 2 * self.n_heads

    def check_state(self, d_state: int) -> None:
        """Raise ConfigError unless the state splits into heads of whole pairs."""
        require(
            d_state % (2 * self.n_heads) == 0,
            "model.d_state",
            d_state,
            f"it must be divisible by 2 * n_heads = {2 * self.n_heads}, so that each head holds whole pairs",
        )


@dataclass(frozen=True)
class LRUConfig(CellConfig):
    """LRU: a diagonal complex recurrence with an input normaliser (arXiv:2303.06349)."""

    title: ClassVar[str] = "LRU"
    summary: ClassVar[str] = (
        "A diagonal complex recurrence; its input normaliser is learned freely or tied to the decay."
    )

    name: Literal["lru"] = "lru"
    normaliser: Literal["learned", "tied"] = "learned"
    r_min: float = 0.0
    r_max: float = 0.99
    max_phase: float = 6.28

    def __post_init__(self) -> None:
        super().__post_init__()
        path = self.path
        require(0 <= self.r_min < 1, f"{path}.r_min", self.r_min, "use a value in [0, 1)")
        require(
            self.r_min < self.r_max, f"{path}.r_min", self.r_min, f"it must be below r_max, which is {self.r_max!r}"
        )
        require(self.r_max < 1, f"{path}.r_max", self.r_max, "use a value below 1")
        require(self.max_phase > 0, f"{path}.max_phase", self.max_phase, "use a positive angle in radians")

    @property
    def label(self) -> str:
        """The name and the normaliser."""
        return f"{self.name}-{self.normaliser}"


@dataclass(frozen=True)
class _TimescaleConfig(CellConfig):
    """What cells that discretise a continuous system have in common: the range of their initial step sizes."""

    dt_min: float = 0.001
    dt_max: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        path = self.path
        require(self.dt_min > 0, f"{path}.dt_min", self.dt_min, "use a positive step size")
        require(
            self.dt_min <= self.dt_max,
            f"{path}.dt_min",
            self.dt_min,
            f"it must be at most dt_max, which is {self.dt_max!r}",
        )


@dataclass(frozen=True)
class S5Config(_TimescaleConfig):
    """S5: one diagonal complex system with many inputs and outputs, HiPPO-N in blocks (arXiv:2208.04933)."""

    title: ClassVar[str] = "S5"
    summary: ClassVar[str] = (
        "One diagonal complex system for all channels, started from HiPPO-N in blocks, zero-order hold."
    )

    name: Literal["s5"] = "s5"
    n_blocks: int = 1
    conjugates: Literal["paired", "free"] = "paired"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.n_blocks >= 1, f"{self.path}.n_blocks", self.n_blocks, "use at least 1 block")

    @property
    def label(self) -> str:
        """The name, and "free" where conjugate symmetry is not enforced."""
        return self.name if self.conjugates == "paired" else f"{self.name}-{self.conjugates}"

    def state_unit(self, d_model: int) -> int:
        """A complex channel in each block."""
        return 2 * self.n_blocks

    def check_state(self, d_state: int) -> None:
        """Raise ConfigError unless the state splits into blocks of whole complex channels."""
        require(
            d_state % (2 * self.n_blocks) == 0,
            "model.d_state",
            d_state,
            f"it must be divisible by 2 * n_blocks = {2 * self.n_blocks}, so that each block holds whole pairs",
        )


class _ChannelConfig(_TimescaleConfig):
    """A cell that runs one system of its own per channel, so that the state is d_model times a channel's state."""

    def state_unit(self, d_model: int) -> int:
        """A complex state in each channel."""
        return 2 * d_model

    def check_sizes(self, d_model: int, d_state: int) -> None:
        """Raise ConfigError unless each channel gets the same whole number of complex states."""
        require(
            d_state % (2 * d_model) == 0,
            "model.d_state",
            d_state,
            f"{self.title} runs a system per channel and d_state counts them all: use a multiple of "
            f"2 * d_model = {2 * d_model}",
        )


@dataclass(frozen=True)
class S4DConfig(_ChannelConfig):
    """S4D: a diagonal complex system per channel (arXiv:2206.11893)."""

    title: ClassVar[str] = "S4D"
    summary: ClassVar[str] = "A diagonal complex system per channel, started from HiPPO-LegS-D or from S4D-Lin."

    name: Literal["s4d"] = "s4d"
    init: Literal["legs", "lin"] = "legs"
    discretisation: Literal["zoh", "bilinear"] = "zoh"

    @property
    def label(self) -> str:
        """The name, the initialisation, and the discretisation where it is not zero-order hold."""
        variant = [] if self.discretisation == "zoh" else [self.discretisation]
        return "-".join([self.name, self.init, *variant])


@dataclass(frozen=True)
class S4Config(_ChannelConfig):
    """S4: a diagonal plus low-rank system per channel, HiPPO-LegS (arXiv:2111.00396)."""

    title: ClassVar[str] = "S4"
    summary: ClassVar[str] = "A diagonal plus low-rank system per channel, started from HiPPO-LegS, bilinear rule."

    name: Literal["s4"] = "s4"


@dataclass(frozen=True)
class GRUConfig(CellConfig):
    """GRU: torch's gated recurrent unit, the non-linear reference."""

    title: ClassVar[str] = "GRU"
    summary: ClassVar[str] = "torch's gated recurrent unit with d_state units: the non-linear reference."

    name: Literal["gru"] = "gru"

    def state_unit(self, d_model: int) -> int:
        """A unit."""
        return 1

    def check_state(self, d_state: int) -> None:
        """Any number of units will do."""


@dataclass(frozen=True)
class TransformerConfig(CellConfig):
    """Transformer: torch's encoder layer with position codes, the attention reference.

    It keeps no state of fixed size: d_state is the width of its feed-forward part, and no hidden-norm trace exists.
    """

    title: ClassVar[str] = "Transformer"
    summary: ClassVar[str] = (
        "torch's encoder layer with position codes: the attention reference. It keeps no state: d_state is the width "
        "of its feed-forward part, and there is no hidden-norm trace."
    )
    has_state: ClassVar[bool] = False

    name: Literal["transformer"] = "transformer"
    n_heads: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.n_heads >= 1, f"{self.path}.n_heads", self.n_heads, "use at least 1 head")

    def state_unit(self, d_model: int) -> int:
        """A place in the feed-forward part."""
        return 1

    def check_state(self, d_state: int) -> None:
        """Any width will do."""

    def check_sizes(self, d_model: int, d_state: int) -> None:
        """Raise ConfigError unless the channels split into heads and position codes into pairs."""
        require(d_model % 2 == 0, "model.d_model", d_model, "use an even number: position codes are sines and cosines")
        require(
            d_model % self.n_heads == 0,
            "model.d_model",
            d_model,
            f"it must be divisible by n_heads, which is {self.n_heads}",
        )


CELLS: dict[str, type[CellConfig]] = {
    str(kind.name): kind
    for kind in (RotRNNConfig, LRUConfig, S5Config, S4DConfig, S4Config, GRUConfig, TransformerConfig)
}
"""The one list of cells: configuration, layers, API and dashboard read their names here."""
