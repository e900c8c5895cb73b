"""`python -m tfrkit`: the `tfr` command."""

from tfrkit.cli.main import main

if __name__ == "__main__":
    main()
