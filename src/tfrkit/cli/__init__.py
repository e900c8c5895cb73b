"""The `tfr` command: one file per subcommand, and shared modules."""
