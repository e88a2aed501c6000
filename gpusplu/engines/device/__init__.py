"""What engines on a GPU share: the factor that certifies its solutions, recorded graphs, memory, residuals."""
