"""The program carnot as a Python package: `carnot` or `python -m carnot_rl` starts it."""
