"""venn-abers: the pair and the merged probability agree; more classes are set up otherwise."""

import warnings

import numpy as np
import pytest
from tests.parity.peer_rows import drawn

from calibrant.calibrators.methods.venn_abers import VennAbers


@pytest.fixture(scope="module")
def peer():
    """Import the peer without the numpy warnings that it switches off for everyone."""
    kept = np.geterr()
    import venn_abers

    np.seterr(**kept)
    return venn_abers


def split(name, seed):
    labels, probs = drawn(name, 700, seed)
    probs = np.clip(probs, 1e-6, 1 - 1e-6)
    logits = np.log(probs) - np.log1p(-probs)
    # What the peer sees has to be tied where log-odds are.
    scores = 1.0 / (1.0 + np.exp(-logits))
    return labels[:400], logits[:400], logits[400:], scores[:400], scores[400:]


def peer_answers(peer, labels, scores, fresh):
    calibrator = peer.VennAbers()
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        calibrator.fit(np.column_stack([1 - scores, scores]), labels)
        return calibrator.predict_proba(np.column_stack([1 - fresh, fresh]))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", ["binary", "calibrated", "tied", "rare"])
def test_pair_and_merged_probability_agree(peer, name, seed):
    labels, logits, fresh_logits, scores, fresh = split(name, seed)
    calibrator = VennAbers().fit(logits, labels)
    probs, pair = peer_answers(peer, labels, scores, fresh)
    p0, p1 = calibrator.predict_pair(fresh_logits)
    assert p0 == pytest.approx(pair[:, 0], abs=1e-9)
    assert p1 == pytest.approx(pair[:, 1], abs=1e-9)
    assert calibrator.predict_proba(fresh_logits) == pytest.approx(probs[:, 1], abs=1e-9)


def test_rows_on_the_calibration_scores_agree_too(peer):
    labels, logits, _, scores, _ = split("tied", 3)
    calibrator = VennAbers().fit(logits, labels)
    _, pair = peer_answers(peer, labels, scores, scores)
    assert np.column_stack(calibrator.predict_pair(logits)) == pytest.approx(pair, abs=1e-9)


def test_more_classes_are_one_against_the_rest_here_and_pairs_of_classes_there(peer):
    labels, probs = drawn("multiclass", 900, 0)
    ours = VennAbers().fit(np.log(probs[:500]), labels[:500]).predict_proba(np.log(probs[500:]))

    def theirs(kind):
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return peer.venn_abers.predict_proba_prefitted_va(
                probs[:500], labels[:500], probs[500:], va_tpe=kind
            )[0]

    assert ours == pytest.approx(theirs("one_vs_all"), abs=1e-9)
    assert np.abs(ours - theirs("one_vs_one")).max() > 0.01
