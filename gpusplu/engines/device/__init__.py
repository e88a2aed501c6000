"""What engines on a GPU share: the factor that certifies its answers, recorded graphs, memory, residuals."""
