"""Is the place where training breaks found: the layer, the kind, and that it lies outside the layers?"""

import math

import pytest
import torch

from rotrnn_core.config import ModelConfig
from rotrnn_core.model import Block, Network
from rotrnn_core.records import Divergence
from rotrnn_core.tasks import Batch
from rotrnn_core.training.divergence import locate_activation, locate_gradient, locate_parameter, norm_of

BAD = [math.nan, math.inf]


def network() -> Network:
    config = ModelConfig(d_model=4, d_state=16, n_layers=3, norm="layer")
    return Network(config, tokens=5, classes=3, generator=torch.Generator().manual_seed(0))


def batch() -> Batch:
    return Batch(torch.arange(12).view(2, 6) % 5, torch.tensor([6, 4]), torch.tensor([0, 1]))


def activation(net: Network) -> Divergence:
    return locate_activation(net, batch(), 7, torch.Generator())


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("layers", [[0], [1], [2], [2, 1]])
def test_an_activation_is_found_in_the_first_layer_that_breaks(layers: list[int], bad: float) -> None:
    net = network()
    for layer in layers:
        net.blocks[layer].gate.W2.bias.data[0] = bad  # type: ignore[index, union-attr]
        net.blocks[layer].cell.D.data[0] = bad  # type: ignore[index, union-attr]
    assert activation(net) == Divergence(step=7, layer=min(layers), kind="activation")


def test_a_broken_classifier_is_an_activation_outside_the_layers() -> None:
    net = network()
    net.classifier.bias.data[0] = math.nan
    assert activation(net) == Divergence(step=7, layer=None, kind="activation")


def test_what_stands_in_the_padding_breaks_nothing() -> None:
    net = network()

    def spoil(block: torch.nn.Module, arguments: object, output: torch.Tensor) -> torch.Tensor:
        return output.index_fill(1, torch.tensor([5]), math.nan) if block is net.blocks[1] else output

    net.blocks[1].register_forward_hook(spoil)
    one_shorter = Batch(batch().inputs, torch.tensor([5, 4]), batch().labels)
    assert locate_activation(net, one_shorter, 7, torch.Generator()).layer is None


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("layers", [[0], [2], [0, 1]])
def test_a_gradient_is_found_in_the_highest_layer_where_it_first_breaks(layers: list[int], bad: float) -> None:
    net = network()
    for parameter in net.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for layer in layers:
        block = net.blocks[layer]
        assert isinstance(block, Block)
        next(block.cell.parameters()).grad.view(-1)[0] = bad  # type: ignore[union-attr]
    assert locate_gradient(net, 7) == Divergence(step=7, layer=max(layers), kind="gradient")


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("layers", [[0], [2], [1, 2]])
def test_a_parameter_is_found_in_the_first_layer_that_holds_it(layers: list[int], bad: float) -> None:
    net = network()
    for layer in layers:
        next(net.blocks[layer].parameters()).data.view(-1)[0] = bad
    assert locate_parameter(net, 7) == Divergence(step=7, layer=min(layers), kind="parameter")


def test_gradients_and_parameters_outside_the_layers_have_none() -> None:
    net = network()
    for parameter in net.parameters():
        parameter.grad = torch.zeros_like(parameter)
    net.encoder.weight.grad[0, 0] = math.nan  # type: ignore[index]
    assert locate_gradient(net, 7).layer is None
    net.classifier.weight.data[0, 0] = math.nan
    assert locate_parameter(net, 7).layer is None


@pytest.mark.parametrize("bad", BAD)
def test_one_value_that_is_not_finite_shows_in_the_norm_of_all(bad: float) -> None:
    tensors = [torch.ones(3), torch.ones(2, 2)]
    assert norm_of(tensors).item() == pytest.approx(math.sqrt(7))
    tensors[1][0, 1] = bad
    assert not math.isfinite(norm_of(tensors).item())
