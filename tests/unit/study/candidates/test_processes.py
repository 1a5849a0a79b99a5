"""Processes beside this one: deaf to Ctrl-C from their first moment."""

import os
import signal

from calibrant.study.candidates.processes import forward_progress


def blocked(messages):
    """Tell which signals this process does not hear."""
    messages.put(str(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())))


def test_ctrl_c_is_the_parents_from_the_start_and_the_parent_still_hears_it():
    told = []
    with forward_progress(told.append) as (context, messages):
        process = context.Process(target=blocked, args=(messages,))
        process.start()
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())
        process.join()
    assert told == ["True"]
    assert process.exitcode == 0
    assert process.pid != os.getpid()
