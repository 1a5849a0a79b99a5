"""Entry point of `python -m calibrant`."""

from calibrant.cli.main import run

if __name__ == "__main__":
    run()
