"""``python -m kubewright``."""

import sys

from kubewright.cli import main

sys.exit(main())
