"""What tests of several folders share: matrices, references, drivers of kernels, and the emulator of a device.

With it gpusplu._core_testing can be imported, which lies in the checkout: an installed package has none.
"""

from pathlib import Path

import gpusplu

ROOT = Path(__file__).resolve().parents[2]
gpusplu.__path__.append(str(ROOT / "gpusplu"))
