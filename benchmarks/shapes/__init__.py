"""The parts of `bench_shapes`: tables, contestants, and the processes in which they run."""
