"""The local stack: the production processes and servers on one machine, supervised."""
