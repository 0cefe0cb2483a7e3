"""Read by Python as it starts: processes that a test starts shift their seeds like the test."""

import os

if os.environ.get("EVENHAND_RESEED"):
    import reseed

    reseed.install(int(os.environ["EVENHAND_RESEED"]))
