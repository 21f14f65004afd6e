"""Layout of datasets: plan rewrites, cluster rows, check sums."""
