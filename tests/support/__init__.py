"""What tests of several folders share: matrices, references, drivers of kernels, and the emulator of a device."""
