"""python -m lockstep.ray train CONFIG -n 4 -o RUN (cluster.py)"""

import sys

from lockstep.ray.cluster import main

sys.exit(main())
