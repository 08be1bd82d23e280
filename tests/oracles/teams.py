"""A team for one call, whose helpers are called before the leader begins."""

from __future__ import annotations

import numpy as np

from margrove._runtime.jit import compiled_for_user
from margrove._runtime.team import Team, wake_helpers

__all__ = ["run_team"]


@compiled_for_user
def call_now(last_call, call):
    wake_helpers(last_call, call)


def run_team(lead, assist, n_threads):
    if n_threads > 1:
        call_now(np.zeros(1, np.int64), 0)  # helpers do not wait for a compiler

    def wake_and_lead(last_call, call, words):
        if n_threads > 1:
            call_now(last_call, call)
        return lead(words)

    return Team(n_threads).run(wake_and_lead, lambda last_call, call, words: assist(words))
