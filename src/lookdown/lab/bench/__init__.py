"""Every benchmark in one run, one table: what it takes beside a peer or a limit, measured together.

Nothing is imported here: scripts that measure import `lookdown.lab.bench.row`, and should hold no more than they use.
"""
