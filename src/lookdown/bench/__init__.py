"""Every benchmark in one run, one table: what it takes beside a peer or a limit, measured together."""

from lookdown.bench.benchmarks import Benchmarks, run_benchmarks
from lookdown.bench.row import Row

__all__ = ["Benchmarks", "Row", "run_benchmarks"]
