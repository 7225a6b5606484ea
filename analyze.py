"""Analyse the runs of a study.

python analyze.py study=demo
"""

import sys
from pathlib import Path

from noisyhealth.report.analyse import main

if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent / "conf"))
