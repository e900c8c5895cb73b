"""The `tfr` command: one file per subcommand, and what they share."""
