"""Speed and memory against goals, as ratios to peers measured in the same run."""
