"""The parts of tests/gpu/triton.py."""
