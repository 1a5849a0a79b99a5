"""Built-in corpus of return messages, with exact posteriors."""

from calibrant.data.return_reasons.messages import BINARY, OUT_OF_SCOPE, Messages, draw
from calibrant.data.return_reasons.world import ACTIONS, NOISE, PRIORS, REASONS

__all__ = [
    "ACTIONS",
    "BINARY",
    "NOISE",
    "OUT_OF_SCOPE",
    "PRIORS",
    "REASONS",
    "Messages",
    "draw",
]
