"""One router per noun of the REST surface."""
