"""The commands beside run.py and analyze.py.

python -m noisyhealth dataset build task=sentiment,condition,qa
python -m noisyhealth dataset export task=qa data=files data.source.paths.qa=notes.jsonl
python -m noisyhealth verify STUDY
python -m noisyhealth bundle STUDY
python -m noisyhealth diff RUN RUN
"""

import sys

from noisyhealth.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
