"""A reward function in the style of verl's examples, for tests/process/dataset_test.cpp."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": 1.0 if ground_truth in solution_str else -1.0, "acc": 1}


def of_one_source(data_source, solution_str, ground_truth, extra_info=None):
    return float(data_source == "sums" and extra_info["split"] == "train" and ground_truth == ["4", "four"])
