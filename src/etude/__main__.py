"""`python -m etude` is `etude`."""

from etude.cli.main import main

if __name__ == "__main__":
    main()
