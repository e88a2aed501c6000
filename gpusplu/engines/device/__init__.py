"""What engines on a GPU share: the factor that certifies its solutions, graphs of its calls, memory, residuals."""
