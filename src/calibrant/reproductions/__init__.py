"""Published numbers and the code conventions behind them, kept for comparison with papers."""

__all__ = ["parity"]
