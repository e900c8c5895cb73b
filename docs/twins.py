"""Chinese pages and their English originals: see docs/runner/twins.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from runner.twins import main

if __name__ == "__main__":
    main()
