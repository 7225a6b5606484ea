"""The commands beside run.py and analyze.py: `python -m noisyhealth --help`.

python -m noisyhealth list
python -m noisyhealth show perturb=typo level=mid --text "I have had a sharp pain in my chest since Monday"
python -m noisyhealth status STUDY
python -m noisyhealth dataset build task=sentiment,condition,qa
python -m noisyhealth verify STUDY
"""

import sys

from noisyhealth.commands.parser import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
