"""`python -m regard`: the same commands as `regard`."""

from regard.cli import main

if __name__ == "__main__":
    main()
