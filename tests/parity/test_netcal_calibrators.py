"""netcal: histograms agree; what its BBQ and ENIR do otherwise than the papers is shown."""

import contextlib
import io

import numpy as np
import pytest
from netcal.binning import BBQ, ENIR, NearIsotonicRegression
from netcal.binning import HistogramBinning as NetcalHistogram
from tests.parity.peer_rows import drawn

from calibrant.calibrators.methods.bayesian_binning import BayesianBinning, candidate_bin_counts
from calibrant.calibrators.methods.enir import NearIsotonicEnsemble, near_isotonic_path
from calibrant.calibrators.methods.histogram import HistogramBinning


def rows(name, n, seed):
    labels, probs = drawn(name, n, seed)
    probs = np.clip(probs, 1e-6, 1 - 1e-6)
    return labels, probs, np.log(probs) - np.log1p(-probs)


def quietly(calibrator, probs, labels):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return calibrator.fit(probs, labels)


@pytest.mark.parametrize("name", ["binary", "calibrated", "rare"])
@pytest.mark.parametrize("n_bins", [4, 10, 40])
def test_histograms_of_equal_width_agree_and_so_do_their_empty_bins(name, n_bins):
    labels, probs, logits = rows(name, 500, 0)
    peer = NetcalHistogram(n_bins).fit(probs, labels)
    ours = HistogramBinning(n_bins, scheme="width", pseudo_count=0).fit(logits, labels)
    asked = np.linspace(0.0012, 0.9987, 300)
    found = ours.predict_proba(np.log(asked / (1 - asked)))
    assert found == pytest.approx(peer.transform(asked), abs=1e-9)


def test_histograms_of_more_classes_agree():
    labels, probs = drawn("multiclass", 900, 1)
    peer = NetcalHistogram(6).fit(probs, labels)
    ours = HistogramBinning(6, scheme="width", pseudo_count=0).fit(np.log(probs), labels)
    assert ours.predict_proba(np.log(probs)) == pytest.approx(peer.transform(probs), abs=1e-9)


def test_netcals_bbq_tries_the_same_numbers_of_bins_but_of_equal_width():
    labels, probs, logits = rows("binary", 400, 2)
    peer = quietly(BBQ(), probs, labels)
    tried = {len(model._bin_bounds[0]) - 1 for model in peer._binning_models}
    assert tried <= set(candidate_bin_counts(400, 400))
    for model in peer._binning_models:
        widths = np.diff(model._bin_bounds[0])
        assert widths == pytest.approx(np.full(len(widths), 1 / len(widths)))
    with pytest.raises(ValueError, match="not implemented"):  # equal frequencies, as in the paper
        quietly(BBQ(equal_intervals=False), probs, labels)
    ours = BayesianBinning().fit(logits, labels).predict_proba(logits)
    assert np.abs(ours - peer.transform(probs)).max() > 0.01


def runs(seed):
    """Return scores and labels in runs of random length."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 30, 10)
    labels = np.repeat(np.arange(10) % 2, lengths)
    return labels, np.sort(rng.uniform(0.01, 0.99, len(labels)))


def peer_path(labels, probs):
    """Yield penalty, number of blocks, rows and values of netcal's models, as each is made."""
    model = NearIsotonicRegression()
    model.fit(probs, labels)
    while (model := model.get_next_model()) is not None:
        kept = sum(len(items) for items in model._group_items)
        yield model._lambda, model._num_groups, kept, model.transform(probs)


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 6, 7])
def test_near_isotonic_paths_agree_where_never_three_blocks_meet(seed):
    labels, probs = runs(seed)
    path = near_isotonic_path(np.ones(len(labels)), labels.astype(float))
    made = list(peer_path(labels, probs))
    assert path.breaks == pytest.approx([penalty for penalty, *_ in made])
    for penalty, (_, blocks, kept, values) in zip(path.breaks, made, strict=True):
        assert kept == len(labels)
        assert blocks == len(path.starts(penalty))
        assert values == pytest.approx(path.fit(penalty), abs=1e-12)


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 6, 7])
def test_the_ensemble_is_the_bic_average_of_netcals_models_as_they_are_made(seed):
    labels, probs = runs(seed)
    made = list(peer_path(labels, probs))
    bic = []
    for _, blocks, _, values in made:
        right = np.where(labels == 1, values, 1 - values)
        bic.append(-2 * np.log(right).sum() + blocks * np.log(len(labels)))
    share = np.exp(0.5 * (min(bic) - np.array(bic)))
    expected = share @ np.array([values for *_, values in made]) / share.sum()
    logits = np.log(probs / (1 - probs))
    ours = NearIsotonicEnsemble(pseudo_count=0).fit(logits, labels).predict_proba(logits)
    assert ours == pytest.approx(expected, abs=1e-5)


def test_netcal_loses_rows_where_three_blocks_meet():
    # Five rows 1, 0, 1, 0, 1: the first four blocks meet at 1/2 at once.
    labels, probs = np.array([1, 0, 1, 0, 1]), np.linspace(0.1, 0.9, 5)
    path = near_isotonic_path(np.ones(5), labels.astype(float))
    assert path.fit(0.5) == pytest.approx([0.5, 0.5, 0.5, 0.5, 1.0])
    penalty, _, kept, _ = next(iter(peer_path(labels, probs)))
    assert penalty == 0.5
    assert kept < 5


def test_netcals_ensemble_averages_models_that_later_ones_have_changed():
    labels, probs = runs(1)
    made = {round(penalty, 9): values for penalty, _, _, values in peer_path(labels, probs)}
    peer = quietly(ENIR(), probs, labels)
    changed = [
        np.abs(model.transform(probs) - made[round(float(model._lambda), 9)]).max()
        for model in peer._binning_models
    ]
    assert max(changed) > 0.1
