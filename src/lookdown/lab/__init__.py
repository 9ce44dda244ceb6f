"""The laboratory: the paper's tables and figures, benchmarks, the demo and the synthetic world.

The product imports nothing of it; the command line does, when such a command runs.
"""
