"""The state of a training job: setup, checkpoints and result."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.fitting.epoch_record import EpochRecord
from calibrant.losses.rows import IGNORE
from calibrant.training.batches import BatchRows
from calibrant.training.checkpoints import Checkpoints
from calibrant.training.devices import make_fabric, planned_world
from calibrant.training.hooks import Hook, Run
from calibrant.training.memory import fits
from calibrant.training.optimisers import make_optimizer
from calibrant.training.options import AUTO_DECAY, TrainingOptions
from calibrant.training.records import AverageRecord, TrainingResult
from calibrant.training.scoring import weight_type
from calibrant.training.sharding import batch_sizes
from calibrant.training.speed import compile_model, match_weight_layout, use_channels_last
from calibrant.training.split_checks import check_batches, learns_from_batches
from calibrant.training.weight_average import WeightAverage


@dataclass(frozen=True)
class Weighing:
    r"""The normalisation of a loss: a weighted mean over rows, or a sum.

    A mean over the rows of a batch is

    $$ L = \frac{\sum_i w_i l_i}{\sum_i w_i} = \sum_p \frac{m_p}{m} L_p, \quad m_p = \sum_{i \in p}
    w_i $$

    with $l_i$ the loss of row $i$, $w_i$ the weight of its class (0 where it is ignored), $L_p$ the
    mean of a part of the batch, $m_p$ its mass and $m$ that of the batch. A sum needs no factor.

    A loss of a whole batch (MMCE, soft F1) does not decompose like this: its parts are weighted by
    their number of rows, and it is computed on the parts.

    Parameters
    ----------
    summed : whether the loss is a sum
    weight : (K,) class weights, or None
    ignore_index : label of ignored rows
    """

    summed: bool = False
    weight: Tensor | None = None
    ignore_index: int = IGNORE

    def mass(self, labels: Tensor) -> Tensor | float:
        """Return m_p of the rows with these labels, without synchronising with a GPU.

        Examples
        --------
        >>> Weighing(weight=torch.tensor([1.0, 3.0])).mass(torch.tensor([0, 1, 1]))
        tensor(7., dtype=torch.float64)
        """
        hard = not labels.is_floating_point()
        if self.weight is None and (not hard or self.ignore_index < 0):
            return float(len(labels) if not hard else labels.numel())  # labels are all classes
        if not hard:
            assert self.weight is not None
            return (labels.movedim(1, -1) * self.weight.to(labels.device)).sum().double()
        counted = labels != self.ignore_index
        if self.weight is None:
            return counted.sum().double()
        weights = self.weight.to(labels.device)[labels.where(counted, 0)]
        return weights.where(counted, 0.0).double().sum()

    def whole(self, labels: Tensor, world: int) -> Tensor | float:
        """Return the mass of a batch over all processes, divided by their number.

        Gradients are averaged over processes, so the factor of a part is m_p over this.
        """
        local = self.mass(labels)
        if world == 1:
            return local
        total = torch.as_tensor(local, dtype=torch.float64, device=labels.device).clone()
        torch.distributed.all_reduce(total)
        return total / world

    def factor(self, labels: Tensor, whole: Tensor | float, world: int) -> Tensor | float:
        """Return the factor of a part's loss: m_p over the mass of the batch.

        For a sum it is the number of processes, since they average their gradients.
        """
        if self.summed:
            return float(world)
        if isinstance(whole, Tensor):
            return self.mass(labels) / whole.where(whole > 0, 1.0)
        return self.mass(labels) / whole


def read_weighing(loss: nn.Module, parts: int) -> Weighing:
    """Return the normalisation of a loss; with several parts its terms must agree.

    Examples
    --------
    >>> from calibrant.losses import FocalLoss
    >>> read_weighing(FocalLoss(reduction="sum"), 2).summed
    True
    """
    terms = [term for part in loss.modules() if (term := _read_term(part)) is not None]
    if not terms or parts == 1:
        return terms[0] if terms else Weighing()
    first = terms[0]
    if any(term.summed != first.summed for term in terms):
        raise InputError(
            "the terms of a loss must be all means or all sums if a batch is split into parts: "
            "give all of them the same reduction, or train with accumulate=1 and devices=1."
        )
    if not first.summed and any(not _alike(term, first) for term in terms):
        raise InputError(
            "the terms of a loss must weight classes and ignore rows alike if a batch is split "
            "into parts: give all of them the same weight, or train with accumulate=1 and "
            "devices=1."
        )
    return first


def _read_term(part: nn.Module) -> Weighing | None:
    """Return the normalisation of one term, from the options of a function or from attributes."""
    options: Any = getattr(part, "options", None)
    settings = {"reduction": "mean", **options} if isinstance(options, dict) else vars(part)
    reduction = settings.get("reduction")
    if reduction not in ("mean", "sum"):
        return None
    weight = settings.get("weight", getattr(part, "weight", None))
    if _averages_over_rows(part):
        weight = None
    weight = None if weight is None else torch.as_tensor(weight, dtype=torch.float32)
    ignored = settings.get("ignore_index", IGNORE)
    return Weighing(reduction == "sum", weight, ignored if isinstance(ignored, int) else IGNORE)


def _averages_over_rows(part: nn.Module) -> bool:
    """Whether torch averages this loss over rows, regardless of class weights."""
    by_weights = isinstance(part, nn.CrossEntropyLoss | nn.NLLLoss)
    return type(part).__module__ == nn.CrossEntropyLoss.__module__ and not by_weights


def _alike(one: Weighing, other: Weighing) -> bool:
    if one.ignore_index != other.ignore_index or (one.weight is None) != (other.weight is None):
        return False
    return one.weight is None or other.weight is None or torch.equal(one.weight, other.weight)


class Stopping:
    """Early stopping with patience, and the weights of the best epoch.

    An epoch is better if it improves the chosen metric of the steer split by more than
    `min_delta`: refinement and log loss must fall, F1 must rise. With "last" every epoch is better
    than the one before.

    Parameters
    ----------
    options : options with `choose_by`, `patience` and `min_delta`

    Examples
    --------
    >>> from calibrant.training import TrainingOptions
    >>> Stopping(TrainingOptions(patience=2)).enough
    False
    """

    def __init__(self, options: TrainingOptions) -> None:
        self.options = options
        self.best_epoch: int | None = None
        self.best_value = float("inf")
        self.best_weights: dict[str, Tensor] = {}
        self.waited = 0

    @property
    def enough(self) -> bool:
        """Whether patience is used up."""
        return self.options.patience is not None and self.waited >= self.options.patience

    def note(self, record: EpochRecord) -> bool:
        """Record an epoch, and return whether it is the best so far."""
        by = self.options.choose_by
        value = record.epoch if by == "last" else getattr(record, by)
        cost = -value if by in ("f1", "last") else value
        # The first epoch always counts, so that there is one to restore.
        first = self.best_epoch is None or by == "last"
        better = first or cost < self.best_value - self.options.min_delta
        if better:
            self.best_epoch, self.best_value, self.waited = record.epoch, cost, 0
        else:
            self.waited += 1
        return better

    def state(self) -> dict[str, Any]:
        """Return the state for a resumed run; the weights are saved separately."""
        best = self.best_value
        return {"best_epoch": self.best_epoch, "best_value": best, "waited": self.waited}

    def load(self, state: dict[str, Any]) -> None:
        """Restore `state`."""
        self.best_epoch, self.best_value = state["best_epoch"], state["best_value"]
        self.waited = state["waited"]


@dataclass
class Job:
    """State shared by the functions of the training loop.

    Parameters
    ----------
    run : the state that hooks see
    options : options of the run
    module : the model itself; `run.model` is Fabric's wrapper of it
    forward : the callable of a step: the model itself if the wrapper would do nothing
    optimizer : Fabric's wrapper of an optimiser
    train_rows, steer_rows : the splits, on the device if they fit
    steps : optimiser steps per epoch
    stopping : the best epoch so far
    frozen : parts of the model that were passed in eval mode, and stay in it
    weights : all parameters of model and loss
    device, kind : device of the model, and dtype of its weights
    shard : rank and number of processes
    weighing : weight of a part of a batch
    normed : whether the model has a trainable batch norm
    log_shift : shift of the logits caused by resampling; None without resampling
    average : moving average of the weights, or None
    """

    run: Run
    options: TrainingOptions
    module: nn.Module
    forward: nn.Module
    optimizer: Any
    train_rows: BatchRows
    steer_rows: BatchRows
    steps: int
    stopping: Stopping
    frozen: list[nn.Module]
    weights: list[nn.Parameter]
    device: torch.device
    kind: torch.dtype | None
    shard: tuple[int, int]
    weighing: Weighing
    normed: bool
    log_shift: Tensor | None
    average: WeightAverage | None


def set_up_job(
    model: nn.Module,
    loss: nn.Module,
    train_rows: BatchRows,
    steer_rows: BatchRows,
    options: TrainingOptions,
    log_shift: Tensor | None = None,
) -> Job:
    """Set up model, loss, optimiser and rows on the device."""
    normed, world = learns_from_batches(model), planned_world(options)
    check_batches(normed, train_rows, steer_rows, options, world)
    if world > 1 and any(True for _ in loss.parameters()):
        raise InputError("a loss with trainable weights needs a single process: set devices=1.")
    fabric = make_fabric(options)
    loss.to(fabric.device)
    weighing = read_weighing(loss, options.accumulate * fabric.world_size)
    frozen = [part for part in model.modules() if model.training and not part.training]
    weights = [*model.parameters(), *loss.parameters()]
    use_channels_last(model)
    fast = compile_model(model, options, fabric.device)
    wrapped, optimizer = fabric.setup(fast, make_optimizer(weights, options))
    if fits(train_rows.nbytes + steer_rows.nbytes, fabric.device):
        train_rows, steer_rows = train_rows.to(fabric.device), steer_rows.to(fabric.device)
    return Job(
        run=Run(model=wrapped, loss=loss, fabric=fabric),
        options=options,
        module=model,
        forward=model if _wrapper_is_idle(fabric, options) else wrapped,
        optimizer=optimizer,
        train_rows=train_rows,
        steer_rows=steer_rows,
        steps=_steps(len(train_rows), options.batch_size, fabric.world_size),
        stopping=Stopping(options),
        frozen=frozen,
        weights=weights,
        device=fabric.device,
        kind=weight_type(model),
        shard=(fabric.global_rank, fabric.world_size),
        weighing=weighing,
        normed=normed,
        log_shift=log_shift,
        average=_start_average(model, options),
    )


def _start_average(model: nn.Module, options: TrainingOptions) -> WeightAverage | None:
    """Return the average of the weights; "auto" has none if the last epoch is asked for."""
    if options.average is None or (options.average == "auto" and options.choose_by == "last"):
        return None
    return WeightAverage(model, AUTO_DECAY if options.average == "auto" else options.average)


def train_mode(job: Job) -> None:
    """Put the model into train mode, except for its frozen parts."""
    job.run.model.train()
    for part in job.frozen:
        part.eval()


def _steps(rows: int, size: int, world: int) -> int:
    """Return the steps of an epoch; a remainder may have joined the last full batch."""
    return len(batch_sizes(rows, size, shuffled=True, world=world))


def _wrapper_is_idle(fabric: Any, options: TrainingOptions) -> bool:
    """Whether Fabric's wrapper would do nothing: no change of precision and no other processes.

    In "64-true" it returns logits in 32 bits, on one process as on several.
    """
    return fabric.world_size == 1 and options.precision == "32-true" and not options.compile


def record_epoch(job: Job, record: EpochRecord) -> None:
    """Record the epoch, and copy its weights if they are the best."""
    job.run.records.append(record)
    if job.stopping.note(record):
        job.stopping.best_weights = copy_weights(job.module)


def copy_weights(model: nn.Module) -> dict[str, Any]:
    """Copy the state of a model to the CPU."""
    return {name: _copy_value(value) for name, value in model.state_dict().items()}


def save_checkpoint(job: Job, hooks: Sequence[Hook], checkpoints: Checkpoints) -> None:
    """Save a checkpoint if one is due; the last epoch is always saved."""
    run, stopping = job.run, job.stopping
    wanted = checkpoints.folder is not None and (checkpoints.due or _is_over(job))
    if wanted and run.fabric.is_global_zero:
        assert stopping.best_epoch is not None
        state = {
            "epoch": run.epoch,
            "step": run.step,
            "stop": run.stop,
            "model": job.module.state_dict(),
            "loss": run.loss.state_dict(),
            "optimizer": job.optimizer.state_dict(),
            "precision": run.fabric.strategy.precision.state_dict(),
            "stopping": stopping.state(),
            "records": [record.to_dict() for record in run.records],
            "hooks": {name: dict(hook.state_dict()) for name, hook in _by_name(hooks).items()},
        }
        if job.average is not None:
            state["average"] = job.average.state()
        checkpoints.save(run.epoch, state, stopping.best_epoch, stopping.best_weights)
    run.fabric.barrier()


def _is_over(job: Job) -> bool:
    return job.run.stop or job.stopping.enough or job.run.epoch + 1 == job.options.epochs


def _copy_value(value: Any) -> Any:
    """Copy a tensor to the CPU, or any other value of a model's state."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    return copy.deepcopy(value)


def resume_job(job: Job, hooks: Sequence[Hook], checkpoints: Checkpoints) -> None:
    """Resume a run from its newest checkpoint.

    Hooks may differ from those of the last start: each restores the state of its class.
    """
    state = checkpoints.newest()
    if state is None:
        return
    run, stopping = job.run, job.stopping
    stopping.load(state["stopping"])
    assert stopping.best_epoch is not None  # the first epoch is always the best so far
    stopping.best_weights = checkpoints.best(stopping.best_epoch)
    job.module.load_state_dict(state["model"])
    run.loss.load_state_dict(state["loss"])
    job.optimizer.load_state_dict(state["optimizer"])
    match_weight_layout(job.optimizer)
    run.fabric.strategy.precision.load_state_dict(state["precision"])
    if job.average is not None:
        job.average.load(state["average"])
    run.records = [EpochRecord.from_dict(record) for record in state["records"]]
    run.epoch, run.step = state["epoch"] + 1, state["step"]
    run.stop = bool(state.get("stop", False))
    hook_states = state.get("hooks", {})
    for name, hook in _by_name(hooks).items():
        if name in hook_states:
            hook.load_state_dict(hook_states[name])


def _by_name(hooks: Sequence[Hook]) -> dict[str, Hook]:
    """Return hooks by class name and their index among hooks of that class."""
    named: dict[str, Hook] = {}
    for hook in hooks:
        index = sum(type(other) is type(hook) for other in named.values())
        named[f"{type(hook).__qualname__} {index}"] = hook
    return named


def build_result(job: Job, average: AverageRecord | None) -> TrainingResult:
    """Return the finished run, with model and loss on the CPU."""
    run, stopping = job.run, job.stopping
    assert stopping.best_epoch is not None
    why: Literal["patience", "hook", "epochs"] = "hook" if run.stop else "epochs"
    if stopping.enough:
        why = "patience"
    return TrainingResult(
        model=job.module.cpu().eval(),
        loss=run.loss.cpu(),
        records=tuple(run.records),
        best_epoch=stopping.best_epoch,
        why=why,
        average=average,
    )
