"""The supernodal engine: fronts on a GPU, small ones by warps and blocks, large ones by tiles."""
