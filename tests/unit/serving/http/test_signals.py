"""Signal handlers are replaced for a while and restored afterwards."""

import signal

import pytest

from calibrant.serving.http.signals import handle_signals


def test_signals_are_handled_and_given_back():
    names = (signal.SIGHUP, signal.SIGUSR1)
    before = [signal.getsignal(name) for name in names]
    seen = []
    with handle_signals(lambda number, frame: seen.append(number), *names):
        for name in names:
            signal.raise_signal(name)
    assert seen == [signal.SIGHUP, signal.SIGUSR1]
    assert [signal.getsignal(name) for name in names] == before


def test_also_after_an_error():
    before = signal.getsignal(signal.SIGHUP)
    with pytest.raises(ValueError, match="broke"), handle_signals(signal.SIG_IGN, signal.SIGHUP):
        raise ValueError("broke")
    assert signal.getsignal(signal.SIGHUP) is before
