"""The default command against what people would use instead: log loss, promises, seconds.

Every data set is cut to at most 10,000 rows and run with three seeds. `calibrant train` is called
as a newcomer would call it; the peers get the same train, steer, choice, calibrate and test rows.
The peer that we are held against is chosen on the choice rows, before the test rows are read; the
best peer in hindsight stands beside it. Each data set and seed is saved when it is done, so that an
interrupted run continues. See `sets`, `peers`, `automl`, `command`, `figures` and
`speed`.
"""

from benchmarks.models.measure import measure

__all__ = ["measure"]
