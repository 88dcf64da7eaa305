"""How does a run go from its first step to its last? One iterator of typed records."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from rotrnn_core import tasks
from rotrnn_core.config import RunConfig
from rotrnn_core.layers.cell import use_backend
from rotrnn_core.model import network_for
from rotrnn_core.records import (
    Checkpoint,
    CheckpointMissed,
    Divergence,
    Evaluation,
    Finished,
    HiddenNorms,
    Loss,
    Record,
    Started,
)
from rotrnn_core.tasks import Loader, Sampler, Sequences, batch_of
from rotrnn_core.training import checkpoints
from rotrnn_core.training.calibration import BATCHES, calibrate
from rotrnn_core.training.divergence import locate_activation, locate_gradient, locate_parameter, norm_of
from rotrnn_core.training.environment import device_of, environment_of
from rotrnn_core.training.evaluation import Tally, tally
from rotrnn_core.training.half_rate import halve_rate
from rotrnn_core.training.optimiser import make_optimiser, set_rates
from rotrnn_core.training.probe import Probe
from rotrnn_core.training.randomness import Stream, generator_of, seed_of


@dataclass
class Control:
    """A hand on the loop from outside.

    Args:
        stop: Once true, the loop writes a checkpoint before its next step and ends.
        step: Completed updates, set by the loop; set anew now and then while an evaluation is at work.
    """

    stop: bool = False
    step: int = 0

    def working(self) -> None:
        """Say that nothing stands still, though no step ends."""
        self.step = self.step


def train(
    config: RunConfig,
    *,
    data_dir: Path,
    checkpoint_dir: Path | str | None = None,
    resume_from: Path | str | None = None,
    control: Control | None = None,
) -> Iterator[Record]:
    """Train one network and say everything that happens.

    Order: Started; in a fresh run HiddenNorms before the first step; then for each step, where its interval or the
    last step asks for it, Loss, HiddenNorms, Evaluation of the validation split, Checkpoint; at the end Evaluation of
    the test split, once, by the network of the step with the best validation accuracy, its Confusion where classes are
    few, the Evaluation at half the rate where the task has one, and Finished. A value that is
    not finite ends the run with Loss, HiddenNorms and Divergence of that step. After a resume no record of a completed
    step comes again. A checkpoint that cannot be written is said in a CheckpointMissed and ends nothing.

    Args:
        config: The run.
        data_dir: Where data sets lie or are made.
        checkpoint_dir: Folder or URL where checkpoints go; none are written when absent.
        resume_from: A checkpoint of the same run to go on from; on a CPU with as many threads the records are those
            of an uninterrupted run, bit for bit (`tokens_per_s` apart).
        control: Lets another thread or a signal handler stop the loop.

    Raises:
        ConfigError: The device asked for does not answer, or the scan cannot run as asked for on it.
        DataMissing: The data cannot be had.
        CheckpointUnusable: `resume_from` is damaged or belongs to another run.
    """
    control = control or Control()
    run = _Run(config, data_dir, control)
    if resume_from is not None:
        run.restore(resume_from)
    yield run.started()
    if resume_from is None:
        run.calibrate()
        yield from run.hidden_norms()
    settings, saved = config.training, -1
    while run.step < settings.steps:
        control.step = run.step
        if control.stop:
            if checkpoint_dir is not None and saved != run.step:
                yield run.save(checkpoint_dir)
            return
        divergence = run.update()
        if divergence is not None:
            yield run.loss()
            yield from run.hidden_norms()
            yield divergence
            return
        if run.due(settings.log_every):
            yield run.loss()
        if run.due(config.probe.every):
            yield from run.hidden_norms()
        if run.due(settings.evaluate_every):
            yield run.validate()
        if checkpoint_dir is not None and run.due(settings.checkpoint_every):
            made = run.save(checkpoint_dir)
            saved = run.step if isinstance(made, Checkpoint) else saved
            yield made
    yield from run.test()
    yield Finished(step=run.step)


class _Run:
    """The state of one training: network, optimiser, place in the data, and every source of chance."""

    def __init__(self, config: RunConfig, data_dir: Path, control: Control) -> None:
        self.config = config
        self.control = control
        self.device = device_of(config.training)
        self.data = tasks.load(config.task, data_dir)
        seed = config.training.seed
        self.network = network_for(
            config.model, config.task.info, generator_of(seed, Stream.PARAMETERS, torch.device("cpu"))
        ).to(self.device)
        self.backend = use_backend(self.network, config.training.backend, self.device)
        self.optimiser = make_optimiser(self.network, config.training)
        order = seed_of(seed, Stream.ORDER)
        self.batches = Loader(self.data.train, config.training.batch_size, order, pinned=self.device.type == "cuda")
        self.dropout = generator_of(seed, Stream.DROPOUT, self.device)
        fixed = np.arange(min(config.probe.batch_size, len(self.data.validation)))
        self.probe = Probe(batch_of(self.data.validation, fixed).to(self.device), config.probe.positions)
        self.step = 0
        self.best: dict[str, Any] | None = None
        self._begin_window()

    def due(self, every: int) -> bool:
        """Whether an interval ends at this step; every interval ends at the last one."""
        return self.step % every == 0 or self.step == self.config.training.steps

    def calibrate(self) -> None:
        """Give batch normalisation its first running statistics; training itself is not touched."""
        seed = self.config.training.seed
        sampler = Sampler(self.data.train, self.config.training.batch_size, seed_of(seed, Stream.CALIBRATION))
        generator = generator_of(seed, Stream.CALIBRATION, self.device)
        calibrate(self.network, (batch.to(self.device) for batch in islice(sampler, BATCHES)), generator)

    def update(self) -> Divergence | None:
        """One optimiser step on the next batch; a value that is not finite is located instead of applied."""
        began = time.perf_counter()
        drawn = next(self.batches)
        batch = drawn.to(self.device)
        self.step += 1
        chance = self.dropout.get_state()
        self.network.train()
        self.optimiser.zero_grad()
        logits = self.network(batch.inputs, batch.cuts, generator=self.dropout)
        loss = functional.cross_entropy(logits, batch.labels)
        loss.backward()  # type: ignore[no-untyped-call]
        rates = set_rates(self.optimiser, self.step, self.config.training)
        gradients = norm_of(p.grad for p in self.network.parameters() if p.grad is not None)
        right = (logits.detach().argmax(-1) == batch.labels).double().mean()
        value, gradient_norm, accuracy = torch.stack([loss.detach().double(), gradients, right]).tolist()
        divergence = None
        if not math.isfinite(value):
            self.dropout.set_state(chance)
            divergence = locate_activation(self.network, batch, self.step, self.dropout)
        elif not math.isfinite(gradient_norm):
            divergence = locate_gradient(self.network, self.step)
        else:
            self.optimiser.step()
            if not math.isfinite(norm_of(p.detach() for p in self.network.parameters()).item()):
                divergence = locate_parameter(self.network, self.step)
        self._window_tokens += int(drawn.lengths.sum())
        self._window_s += time.perf_counter() - began
        self._latest = (value, accuracy, *rates, gradient_norm)
        return divergence

    def started(self) -> Started:
        """What is about to be trained, and on what."""
        return Started(
            step=self.step,
            total_steps=self.config.training.steps,
            parameter_count=sum(parameter.numel() for parameter in self.network.parameters()),
            device=str(self.device),
            profile_positions=self.probe.positions,
            environment=environment_of(self.device, self.backend),
        )

    def loss(self) -> Loss:
        """The latest step; the speed is the mean since the last such record, probes and evaluations apart."""
        speed = self._window_tokens / self._window_s
        self._begin_window()
        return Loss(self.step, *self._latest, tokens_per_s=speed)

    def hidden_norms(self) -> list[HiddenNorms]:
        """The three statistics on the probe batch."""
        return self.probe.measure(self.network, self.step)

    def validate(self) -> Evaluation:
        """Loss and accuracy over the validation split; the network is kept where it has never been as accurate."""
        found = self._tally(self.data.validation).evaluation("validation", self.step)
        if self.best is None or found.accuracy > self.best["accuracy"]:
            network = {name: value.clone() for name, value in self.network.state_dict().items()}
            self.best = {"step": self.step, "accuracy": found.accuracy, "network": network}
        return found

    def test(self) -> list[Record]:
        """What the network that validation chose makes of the test split; training is over then."""
        assert self.best is not None
        self.network.load_state_dict(self.best["network"])
        found = self._tally(self.data.test)
        said: list[Record] = [found.evaluation("test", self.step, self.best["step"]), *found.confusion(self.step)]
        if self.config.task.info.half_rate and halve_rate(self.network):
            said.append(self._tally(self.data.test, every=2).evaluation("half_rate_test", self.step))
        return said

    def _tally(self, split: Sequences, every: int = 1) -> Tally:
        return tally(
            self.network,
            split,
            batch_size=2 * self.config.training.batch_size,
            device=self.device,
            every=every,
            working=self.control.working,
        )

    def save(self, folder: Path | str) -> Checkpoint | CheckpointMissed:
        """Everything that the rest of the run depends on."""
        content = {
            "config": self.config.to_dict(),
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "dropout": self.dropout.get_state(),
            "batches_drawn": self.batches.drawn,
            "reference_norms": self.probe.reference,
            "best": self.best,
        }
        try:
            return checkpoints.save(folder, self.step, content)
        except checkpoints.CheckpointUnwritten as error:
            return CheckpointMissed(self.step, str(error))

    def restore(self, path: Path | str) -> None:
        """Become what `save` has written.

        Raises:
            CheckpointUnusable: It cannot be read, or is another run's.
        """
        content = checkpoints.load(path, self.config.to_dict())
        self.network.load_state_dict(content["network"])
        self.optimiser.load_state_dict(content["optimiser"])
        self.dropout.set_state(content["dropout"])
        self.batches.drawn = content["batches_drawn"]
        self.probe.reference = content["reference_norms"]
        self.best = content.get("best")
        self.step = content["step"]

    def _begin_window(self) -> None:
        self._window_tokens, self._window_s = 0, 0.0
