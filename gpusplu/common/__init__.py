"""What every layer above uses: arguments, arrays, matrices, results. Empty: `import gpusplu` loads no NumPy."""
