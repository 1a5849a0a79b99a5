"""`python -m benchmarks.models --sets adult --seeds 0`: one data set and one seed alone."""

import sys

from benchmarks.models.measure import main

if __name__ == "__main__":
    sys.exit(main())
