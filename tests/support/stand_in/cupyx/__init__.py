"""What install() takes over of cupyx, in host memory: names, types and checks, and SciPy behind them."""
