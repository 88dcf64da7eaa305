"""Does a run say everything in order, survive a stop bit for bit, and call a divergence by its name?"""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from rotrnn_core.config import ConfigError, RunConfig
from rotrnn_core.model import Network
from rotrnn_core.records import Checkpoint, Divergence, Evaluation, Finished, HiddenNorms, Loss, Record, Started
from rotrnn_core.training import CheckpointUnusable, Control, checkpoints, train
from rotrnn_core.training.loop import _Run

Make = Callable[..., RunConfig]


def comparable(records: list[Record]) -> list[Record]:
    """The records without what may differ between two runs of the same computation: speed and paths."""
    found: list[Record] = []
    for record in records:
        if isinstance(record, Loss):
            record = dataclasses.replace(record, tokens_per_s=0.0)
        if isinstance(record, Checkpoint):
            record = dataclasses.replace(record, path=Path(record.path).name, sha256="", size_bytes=0)
        found.append(record)
    return found


def names(records: list[Record]) -> list[str]:
    return [type(record).__name__ for record in records]


def test_records_come_in_order(small_run: Make, data_dir: Path, tmp_path: Path) -> None:
    records = list(train(small_run(), data_dir=data_dir, checkpoint_dir=tmp_path))
    norms = ["HiddenNorms"] * 3
    assert names(records) == [
        *["Started", *norms],
        *["Loss"],
        *["Loss", *norms, "Checkpoint"],
        *["Loss", "Evaluation"],
        *["Loss", *norms, "Checkpoint"],
        *["Loss"],
        *["Loss", *norms, "Evaluation", "Checkpoint"],
        *["Evaluation", "Confusion", "Finished"],
    ]
    steps = [record.step for record in records]
    assert steps == sorted(steps)
    statistics = [record.statistic for record in records if isinstance(record, HiddenNorms)]
    assert statistics == ["per_head", "whole", "relative"] * 4
    splits = [record.split for record in records if isinstance(record, Evaluation)]
    assert splits == ["validation", "validation", "test"]


def test_a_run_tells_what_it_runs_on(small_run: Make, data_dir: Path) -> None:
    started = next(iter(train(small_run(), data_dir=data_dir)))
    assert isinstance(started, Started)
    assert started.device == "cpu"
    assert started.total_steps == 6
    assert started.environment["torch"] == torch.__version__
    assert {"threads", "device_name", "deterministic_algorithms"} <= set(started.environment)
    network = Network(small_run().model, tokens=18, classes=10)
    assert started.parameter_count == sum(parameter.numel() for parameter in network.parameters())


def test_the_same_seed_repeats_and_another_does_not(small_run: Make, data_dir: Path) -> None:
    first, again, other = (
        comparable(list(train(small_run(training={"seed": seed}), data_dir=data_dir))) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_training_learns(small_run: Make, data_dir: Path) -> None:
    config = small_run(
        model={"dropout": 0.0},
        training={"steps": 40, "batch_size": 40, "learning_rate": 0.03, "recurrence_learning_rate": 0.01},
    )
    losses = [record.loss for record in train(config, data_dir=data_dir) if isinstance(record, Loss)]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("cell", [{"name": "rotrnn", "n_heads": 2}, "lru"])
@pytest.mark.parametrize("stop_at", [2, 4, 6])
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(
    small_run: Make, data_dir: Path, tmp_path: Path, stop_at: int, cell: object
) -> None:
    config = small_run(model={"cell": cell})
    whole = comparable(list(train(config, data_dir=data_dir, checkpoint_dir=tmp_path / "whole")))
    source = tmp_path / "cut" / f"step-{stop_at:08d}.pt"
    for record in train(config, data_dir=data_dir, checkpoint_dir=tmp_path / "cut"):
        if isinstance(record, Checkpoint) and record.step == stop_at:
            break
    resumed = list(train(config, data_dir=data_dir, checkpoint_dir=tmp_path / "rest", resume_from=source))
    assert isinstance(resumed[0], Started)
    assert resumed[0].step == stop_at
    after = whole.index(next(r for r in whole if isinstance(r, Checkpoint) and r.step == stop_at)) + 1
    assert comparable(resumed[1:]) == whole[after:]
    if stop_at < config.training.steps:
        one, other = (
            checkpoints.load(tmp_path / name / "step-00000006.pt", config.to_dict()) for name in ("whole", "rest")
        )
        assert all(torch.equal(value, other["network"][name]) for name, value in one["network"].items())


def test_a_stop_writes_a_checkpoint_and_ends_without_a_verdict(small_run: Make, data_dir: Path, tmp_path: Path) -> None:
    control = Control()
    records = []
    for record in train(small_run(), data_dir=data_dir, checkpoint_dir=tmp_path, control=control):
        records.append(record)
        control.stop = control.stop or (isinstance(record, Loss) and record.step == 3)
    assert names(records)[-2:] == ["Evaluation", "Checkpoint"]
    assert records[-1].step == control.step == 3
    resumed = list(
        train(small_run(), data_dir=data_dir, checkpoint_dir=tmp_path, resume_from=tmp_path / "step-00000003.pt")
    )
    whole = list(train(small_run(), data_dir=data_dir))
    rest = [record for record in whole if record.step > 3]
    kept = [record for record in resumed[1:] if not isinstance(record, Checkpoint)]
    assert comparable(kept) == comparable(rest)


def test_a_stop_before_the_first_step_keeps_the_unit_of_the_relative_norm(
    small_run: Make, data_dir: Path, tmp_path: Path
) -> None:
    stopped = list(train(small_run(), data_dir=data_dir, checkpoint_dir=tmp_path, control=Control(stop=True)))
    assert names(stopped) == ["Started", *["HiddenNorms"] * 3, "Checkpoint"]
    resumed = list(train(small_run(), data_dir=data_dir, resume_from=tmp_path / "step-00000000.pt"))
    whole = list(train(small_run(), data_dir=data_dir))
    assert comparable(resumed[1:]) == comparable(whole[4:])


def test_the_last_two_checkpoints_are_kept_with_their_sums(small_run: Make, data_dir: Path, tmp_path: Path) -> None:
    records = list(train(small_run(), data_dir=data_dir, checkpoint_dir=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000004.pt", "step-00000006.pt"]
    last = [record for record in records if isinstance(record, Checkpoint)][-1]
    content = Path(last.path).read_bytes()
    assert len(content) == last.size_bytes
    assert checkpoints.hashlib.sha256(content).hexdigest() == last.sha256


def test_a_checkpoint_that_cannot_be_used_says_so(small_run: Make, data_dir: Path, tmp_path: Path) -> None:
    list(train(small_run(), data_dir=data_dir, checkpoint_dir=tmp_path))
    good = tmp_path / "step-00000006.pt"
    torn = tmp_path / "torn.pt"
    torn.write_bytes(good.read_bytes()[:1000])
    for path, config in (
        (torn, small_run()),
        (tmp_path / "absent.pt", small_run()),
        (good, small_run(training={"seed": 9})),
    ):
        with pytest.raises(CheckpointUnusable, match=path.name):
            list(train(config, data_dir=data_dir, resume_from=path))


def break_at(run: _Run, step: int, kind: str) -> None:
    """Make the second layer break at a step, in the way that `kind` says."""
    cell = run.network.blocks[1].cell
    if kind == "activation":
        if run.step + 1 == step:
            with torch.no_grad():
                cell.D[0] = torch.inf  # type: ignore[index, union-attr]
    elif kind == "gradient":
        cell.C.register_hook(lambda grad: grad * (math.nan if run.step == step else 1.0))  # type: ignore[union-attr]
    else:
        move = run.optimiser.step

        def spoil() -> None:
            move()
            if run.step == step:
                with torch.no_grad():
                    cell.B.view(-1)[0] = torch.nan  # type: ignore[operator, union-attr]

        run.optimiser.step = spoil  # type: ignore[method-assign]


@pytest.mark.parametrize("kind", ["activation", "gradient", "parameter"])
def test_a_divergence_is_found_with_step_layer_and_kind(
    small_run: Make, data_dir: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    step = 3
    update, restored = _Run.update, []

    def breaking(run: _Run) -> Divergence | None:
        if kind == "activation" or not restored:
            break_at(run, step, kind)
            restored.append(run)
        return update(run)

    monkeypatch.setattr(_Run, "update", breaking)
    records = list(train(small_run(model={"n_layers": 3}), data_dir=data_dir))
    assert records[-1] == Divergence(step=step, layer=1, kind=kind)  # type: ignore[arg-type]
    assert names(records)[-5:] == ["Loss", *["HiddenNorms"] * 3, "Divergence"]
    assert {record.step for record in records[-5:]} == {step}
    assert math.isfinite(records[-5].loss) == (kind != "activation")  # type: ignore[union-attr]


def test_a_rate_that_is_far_too_high_ends_as_a_result(small_run: Make, data_dir: Path) -> None:
    rates = {"learning_rate": 10.0, "recurrence_learning_rate": 10.0, "warmup_steps": 0}
    wild = small_run(model={"cell": "lru"}, training={"steps": 40, "log_every": 10, "evaluate_every": 40, **rates})
    *_, last = train(wild, data_dir=data_dir)
    assert isinstance(last, (Divergence, Finished))


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device answers here")
def test_a_device_that_is_not_there_is_a_configuration_error(small_run: Make, data_dir: Path) -> None:
    with pytest.raises(ConfigError, match=r"training\.device is 'cuda'"):
        next(iter(train(small_run(training={"device": "cuda"}), data_dir=data_dir)))
