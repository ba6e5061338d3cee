"""``python -m pufferflow``, and the command ``pufferflow``."""


def main() -> int:
    """Run the command line of the process, return the exit code."""
    try:
        from pufferflow import cli

        return cli.main()
    except KeyboardInterrupt:  # while modules are loaded
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
