"""Networks for images, and networks of networks, on a GPU; skipped where torch sees none."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.unit.models import image_network_checks as checks

from calibrant.models import (
    MLP,
    DenseNet121,
    Ensemble,
    MCDropout,
    ResNet50,
    ResNet110,
    SmallCNN,
    WideResNet,
)

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")

SMALL = {
    "resnet50": lambda: ResNet50(3, 3, width=8),
    "resnet50_tiny": lambda: ResNet50(3, 3, stem="tiny_imagenet", width=8),
    "resnet50_imagenet": lambda: ResNet50(3, 3, stem="imagenet", width=8),
    "resnet110": lambda: ResNet110(3, 3, width=8),
    "wrn_26_10": lambda: WideResNet(3, 3, widen=1, blocks=2),
    "densenet121": lambda: DenseNet121(3, 3, growth=8),
    "small_cnn": lambda: SmallCNN(3, 3, width=8),
}


def made(name):
    torch.manual_seed(0)
    return SMALL[name]().cuda()


def images(n=4, size=64):
    drawn = checks.drawn_images(n, size).cuda()
    return drawn.contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(("kind", "name"), [(ResNet50, "resnet50"), (DenseNet121, "densenet121")])
def test_weights_and_logits_are_those_of_torchvision(kind, name):
    theirs = pytest.importorskip("torchvision").models.get_model(name, weights=None)
    theirs = checks.stirred(theirs).cuda()
    ours = kind(3, 1000, stem="imagenet").double().cuda().eval()
    ours.load_state_dict(theirs.state_dict())
    sizes = [sum(part.numel() for part in each.parameters()) for each in (ours, theirs)]
    assert sizes[0] == sizes[1]
    with torch.no_grad():
        for size in (224, 97):
            rows = checks.drawn_images(2, size).double().cuda()
            expected = theirs(rows)
            assert float(expected.std()) > 0
            scale = float(expected.abs().max())
            torch.testing.assert_close(ours(rows), expected, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("name", SMALL)
def test_logits_are_those_of_the_cpu(name):
    model = checks.stirred(made(name))
    rows = images().double()
    with torch.no_grad():
        found = model(rows).cpu()
        torch.testing.assert_close(found, model.cpu()(rows.cpu()), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", SMALL)
def test_a_step_never_waits_for_the_gpu(name):
    model, rows = made(name).train(), images()
    labels = torch.tensor([0, 1, 2, 0]).cuda()

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(rows), labels)
        loss.backward()

    step()  # first use may set things up
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(weights.grad.isfinite().all() for weights in model.parameters())


@pytest.mark.parametrize("name", SMALL)
def test_a_captured_graph_gives_the_same_logits(name):
    model, rows = made(name).eval(), images()
    with torch.no_grad():
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(3):
                model(rows)
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = model(rows)
        rows.copy_(images().flip(0))
        graph.replay()
        torch.testing.assert_close(logits, model(rows), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["resnet50", "wrn_26_10", "densenet121", "small_cnn"])
def test_it_is_one_graph(name):
    checks.check_it_is_one_graph(made(name), 64)


@pytest.mark.parametrize("name", SMALL)
def test_it_learns_in_half_precision(name):
    model, rows = made(name).train(), images(8)
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1]).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(40):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.1


def test_networks_of_networks_give_the_logits_of_the_cpu():
    torch.manual_seed(0)
    members = [MLP(5, 3).double(), MLP(5, 3).double()]
    rows = torch.randn(9, 5, dtype=torch.float64)
    for model in (
        Ensemble(members, shifts=[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]),
        MCDropout(members[0], passes=7, seed=2, shift=[1.0, 0.0, 0.5]),
    ):
        model = model.double().eval()
        with torch.no_grad():
            expected = model(rows)
            found = model.cuda()(rows.cuda())
            model.cpu()
        assert found.is_cuda
        torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=1e-9)
