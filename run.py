"""Run cells of the study.

python run.py model=llama perturb=typo level=mid
python run.py -m model=gpt,llama,bluebert perturb=typo,homophone,redact level=low,mid,high
"""

import sys
from pathlib import Path

from noisyhealth.sweep.command import main

if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent / "conf"))
