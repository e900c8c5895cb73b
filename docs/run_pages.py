"""Run the blocks of pages and compare what they print: `python docs/run_pages.py [--update] [PAGE...]`.

`--update` writes what was printed into the pages. `make docs-test` runs all of them. `--data learn/photos` makes what
that page starts from in the current folder, for a reader who follows it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from runner.run import main

if __name__ == "__main__":
    main()
