"""Parts of fitting that need no torch: labels, splits, figures of the steer rows, gammas."""
