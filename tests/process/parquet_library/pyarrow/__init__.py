"""Stands in for pyarrow in tests/process/dataset_test.cpp."""
