"""What holds for every network that reads images; the tests of each call these."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.modules.batchnorm import _BatchNorm

from calibrant.errors import InputError
from calibrant.models import build


def drawn_images(n, size, channels=3, seed=0):
    """Standard-normal images (n, channels, size, size)."""
    return torch.randn(n, channels, size, size, generator=torch.Generator().manual_seed(seed))


def number_of_weights(kind, *arguments, **options):
    """Count the weights of a network of full size, none of which is drawn."""
    with torch.device("meta"):
        return sum(weights.numel() for weights in kind(*arguments, **options).parameters())


def stirred(model, seed=0):
    """Give batch norm scales, offsets and statistics that are not 1 and 0; in double precision."""
    draw = torch.Generator().manual_seed(seed)
    model = model.double().eval()
    for name, part in model.state_dict().items():
        if part.ndim == 1 and part.is_floating_point():
            low, high = (0.5, 1.5) if "mean" not in name and "bias" not in name else (-0.2, 0.2)
            drawn = torch.empty(part.shape, dtype=part.dtype)  # on the CPU, where the generator is
            part.copy_(drawn.uniform_(low, high, generator=draw))
    return model


class Written:
    """The layers of a network as plain functions of its state dict."""

    def __init__(self, model):
        self.state = model.state_dict()

    def conv(self, name, x, stride=1):
        weight = self.state[f"{name}.weight"]
        side = weight.shape[-1]
        columns = F.unfold(x, side, padding=side // 2, stride=stride)
        out = weight.flatten(1) @ columns
        return out.unflatten(2, tuple(-(-length // stride) for length in x.shape[2:]))

    def norm(self, name, x):
        parts = ("running_mean", "running_var", "weight", "bias")
        mean, var, scale, offset = (self.state[f"{name}.{part}"] for part in parts)
        shape = (1, -1, 1, 1)
        out = (x - mean.view(shape)) / (var.view(shape) + 1e-5).sqrt()
        return out * scale.view(shape) + offset.view(shape)

    def linear(self, name, x):
        return x @ self.state[f"{name}.weight"].T + self.state[f"{name}.bias"]

    def holds(self, name):
        return f"{name}.weight" in self.state


def check_it_over_fits_eight_images(model, size, *, steps=40, lr=3e-3):
    """A loss of almost nothing on eight images, and accuracy 1 in eval mode."""
    images, labels = drawn_images(8, size), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.05
    with torch.no_grad():
        _take_statistics(model, images)
        assert (model.eval()(images).argmax(1) == labels).all()


def _take_statistics(model, images):
    """Replace the running statistics of batch norm, which lag behind after so few steps."""
    norms = [part for part in model.modules() if isinstance(part, _BatchNorm)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all passes, of which there is one
    model(images)


def check_it_is_rebuilt_from_json_and_weights(model, size):
    """The config through JSON and the state dict give the same logits, to the bit."""
    model, images = stirred(model), drawn_images(3, size).double()
    again = build(json.loads(json.dumps(model.config))).double().eval()
    assert again.config == model.config
    assert not torch.equal(again(images), model(images))
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(images), model(images))


def check_companions_do_not_matter(model, size):
    """An image alone has the logits that it has in any batch, in any memory format."""
    model, images = stirred(model), drawn_images(5, size).double()
    together = model(images)
    assert together.shape == (5, 3)
    assert len(together.unique(dim=0)) == 5
    alone = torch.cat([model(image.unsqueeze(0)) for image in images])
    torch.testing.assert_close(alone, together, rtol=0, atol=1e-9)
    backwards = model(images.flip(0)).flip(0)
    torch.testing.assert_close(backwards, together, rtol=0, atol=1e-9)
    last = model(images.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(last, together, rtol=0, atol=1e-9)


def check_every_weight_is_trained(model, size):
    """Each weight gets a finite gradient, and none of them is nothing but zeros."""
    model.train()
    model(drawn_images(4, size)).square().sum().backward()
    for name, weights in model.named_parameters():
        assert weights.grad is not None, name
        assert weights.grad.isfinite().all(), name
        assert weights.grad.any(), name


def check_it_is_one_graph(model, size):
    """Nothing of it leaves the graph that torch.compile makes, in training and after it."""
    images = drawn_images(2, size).to(next(model.parameters()).device)
    for mode in (True, False):
        model.train(mode)
        torch._dynamo.reset()
        found = torch.compile(model, backend="eager", fullgraph=True)(images)
        torch.testing.assert_close(found, model(images), rtol=1e-4, atol=1e-4)


def check_first_weights(model):
    """Convolutions are He-normal by fan-out and lie with channels last; batch norm is 1 and 0."""
    for name, weights in model.named_parameters():
        if weights.ndim == 4:
            assert weights.is_contiguous(memory_format=torch.channels_last), name
            wanted = (2 / (weights.shape[0] * weights[0, 0].numel())) ** 0.5
            if weights.numel() > 1000:
                assert float(weights.detach().std()) == pytest.approx(wanted, rel=0.15), name
        elif weights.ndim == 1 and not name.startswith(("fc", "classifier")):
            assert (weights == (0 if name.endswith("bias") else 1)).all(), name


def check_bad_images_are_named(model, least):
    """Each wrong input has its own sentence."""
    good = torch.zeros(2, 3, least, least)
    for bad, sentence in [
        (good[0], rf"images must have shape \(rows, 3, height, width\), got \(3, {least}, {least}"),
        (good[:, :1], rf"images must have shape .* got \(2, 1, {least}, {least}\)"),
        (good.movedim(1, 3), rf"images must have shape .* got \(2, {least}, {least}, 3\)"),
        (good.byte(), r"images must be floating-point .* got torch\.uint8: normalise them first"),
        (good[..., 1:], rf"at least {least} x {least} pixels .* got {least} x {least - 1}"),
    ]:
        with pytest.raises(InputError, match=sentence):
            model(bad)
    assert model.eval()(good).shape == model.train()(good).shape == (2, 3)


def check_bad_options_are_named(kind, **wrong):
    """Each wrong option has its own sentence: name=[(value, sentence), ...]."""
    wrong = {
        "n_channels": [(0, "n_channels must be .* at least 1, got 0")],
        "n_classes": [(1, "n_classes must be .* at least 2, got 1")],
        **wrong,
    }
    for name, cases in wrong.items():
        for value, sentence in cases:
            with pytest.raises(InputError, match=sentence):
                kind(**{"n_channels": 3, "n_classes": 3, name: value})


def check_numpy_numbers_become_pythons(kind, **sizes):
    """A config is JSON, also where the options came from NumPy."""
    given = {name: np.int64(value) for name, value in sizes.items()}
    model = kind(np.int64(1), np.int32(3), **given)
    assert build(json.loads(json.dumps(model.config))).config == model.config
