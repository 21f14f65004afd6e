"""Write datasets: rows partitioned into files, committed together."""
