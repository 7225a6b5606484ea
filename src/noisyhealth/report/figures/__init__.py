"""A study's figures, from frames to drawings: each of one weights, with the sentence that tells what it shows.

Every function returns one figure or more for each weights, in the order of the frame, and none where nothing can be
drawn: an empty frame, or no row with the number that the figure shows.
"""

from noisyhealth.report.figures.categories import categories
from noisyhealth.report.figures.dose import dose
from noisyhealth.report.figures.drops import drops
from noisyhealth.report.figures.heatmap import heatmap
from noisyhealth.report.figures.medical import medical

__all__ = ["categories", "dose", "drops", "heatmap", "medical"]
