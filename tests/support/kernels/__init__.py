"""What the tests of kernels share: ways to run them, buffers that notice stray writes, tables filled in."""
