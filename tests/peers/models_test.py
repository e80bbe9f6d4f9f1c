"""What bench/peers/models.py computes from its figures, without a peer or a model.

models_test.py FOLDER: the one that holds models.py.
"""
import json
import math
import pathlib
import sys
import tempfile
import types

FOLDER = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(FOLDER))
import cases  # noqa: E402
import limits  # noqa: E402
import models  # noqa: E402
import results  # noqa: E402

SHAPES = FOLDER.parent / "shapes"


def config_of(shape):
    return json.loads((SHAPES / f"{shape}.json").read_text())


def matrices_of(config):
    """Of a model whose layers are all alike: full attention and a gated MLP."""
    hidden, width = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim", hidden // config["num_attention_heads"])
    queries, keys = head * config["num_attention_heads"], head * config["num_key_value_heads"]
    mixer = {"q_proj": (queries, hidden), "k_proj": (keys, hidden), "v_proj": (keys, hidden),
             "o_proj": (hidden, queries)}
    mlp = {"gate_proj": (width, hidden), "up_proj": (width, hidden), "down_proj": (hidden, width)}
    of_layer = {f"self_attn.{n}": s for n, s in mixer.items()} | {f"mlp.{n}": s for n, s in mlp.items()}
    return {f"model.layers.{i}.{n}.weight": s for i in range(config["num_hidden_layers"]) for n, s in of_layer.items()}


def check_limits_against_the_weights_one_by_one():
    reads_slowly = limits.Machine(read=3, bfloat16=1e12, float32=1)
    computes_slowly = limits.Machine(read=1e12, bfloat16=7, float32=1)
    for shape in (file.stem for file in SHAPES.glob("*.json") if file.stem not in cases.MIXERS):
        config = config_of(shape)
        work, layers = limits.Work(config), config["num_hidden_layers"]
        matrices = matrices_of(config)
        head = config["vocab_size"] * config["hidden_size"]
        blocks = sum(math.prod(s) for s in matrices.values())
        assert (work.blocks(), work.head) == (blocks, head)
        queries = matrices["model.layers.0.self_attn.q_proj.weight"][0]
        sequences, length = 3, 11
        # Each position of each query attends to those up to half the length on average, in scores and in sums.
        attended = sum(4 * layers * queries * position for position in range(length)) * sequences
        computed = 2 * blocks * sequences * length + 2 * head * sequences + attended
        found = work.prefill_seconds(computes_slowly, sequences, length) * computes_slowly.bfloat16
        assert abs(found - computed) <= 2 * layers * queries * length * sequences, (found, computed)
        keys = [s[0] for n, s in matrices.items() if n.endswith("k_proj.weight")]
        read = 2 * (blocks + head) + sequences * length * 2 * 2 * sum(keys)
        assert math.isclose(work.decode_seconds(reads_slowly, sequences, length), read / reads_slowly.read)
        for machine in (reads_slowly, computes_slowly):
            steps = sum(work.decode_seconds(machine, 5, 7 + t, 7 + 5 * t) for t in (1, 2, 3))
            both = steps + work.prefill_seconds(machine, 1, 7)
            assert math.isclose(work.answers_seconds(machine, 7, 5, 4), both)


# Numbers in the matrices of transformers' models, without embeddings.
MATRICES = {"qwen3-dense": 24117248, "gemma3-window": 24117248, "lfm2-convolution": 26083328,
            "qwen3.5-delta": 28622848, "qwen3-experts": 156303360}


def check_limits_of_each_kind_of_layer():
    assert set(MATRICES) == set(cases.MIXERS)
    works = {shape: limits.Work(config_of(shape)) for shape in MATRICES}
    for shape, numbers in MATRICES.items():
        assert works[shape].total(lambda layer: layer.read(1000)) == numbers, shape
    dense, window, experts, delta = (works[s] for s in ("qwen3-dense", "gemma3-window", "qwen3-experts", "qwen3.5-delta"))
    routers = 8 * 16 * 512
    assert experts.blocks() == dense.blocks() + routers
    assert experts.total(lambda layer: layer.read(3)) == dense.blocks() + routers + 8 * 4 * 3 * 512 * 768
    reads_slowly = limits.Machine(read=1, bfloat16=1e15, float32=1)
    step = [[w.decode_seconds(reads_slowly, 2, n) for n in (100, 1000)] for w in (dense, window, delta)]
    assert step[0][0] == step[1][0], "within the window, a window costs nothing"
    position = 2 * 2 * 2 * 2 * 64  # of two sequences, keys and values of two heads, two bytes each
    assert [b - a for a, b in step] == [position * (8 * 900), position * (900 + 7 * 28), position * (2 * 900)]
    assert dense.attended(100) == window.attended(100)
    # The first 128 rows see a triangle of positions, each of the others 128.
    sees = 128 * 128 / 2 + 872 * 128
    assert window.attended(1000) == 2 * 512 * (7 * sees + 1000 * 1000 / 2)


def check_rows():
    figure = cases.Figure("decode", "seconds", 100, limit=lambda w, m: 1, ratios={"peer": 2}, fraction=0.5)
    ours = [{"seconds": s, "peak_mebibytes": 10 * s} for s in (2, 4, 5)]
    theirs = [{"seconds": s, "peak_mebibytes": 1} for s in (4, 12, 5)]
    row = results.row_of(figure, "peer", ours, theirs, 1)
    expected = {"name": "decode [tokens/s], against peer", "ours": 25, "peer": 20, "ratio": 2, "least_ratio": 1,
                "most_ratio": 3, "limit_fraction": 0.25, "peak_mebibytes": 50, "ratio_target": 2}
    assert expected.items() <= row.items(), row
    alone = results.row_of(figure, None, ours, None, None)
    assert (alone["peer"], alone["ratio"], alone["limit_fraction"]) == (None, None, None)
    fastest = {"a": {"x": 1, "y": 5}, "b": {"x": 2, "y": 3}, "c": {"x": 3, "y": 4}}
    assert models.best_variants(fastest, [cases.Figure("", "x", 1), cases.Figure("", "y", 1)]) == {"a", "b"}


def check_processors():
    epyc = "model name\t: AMD EPYC\ncpu family\t: 26\nflags\t\t: fpu avx512_bf16\n"
    xeon = "model name\t: Intel(R) Xeon(R) Processor @ 2.70GHz\ncpu family\t: 6\nflags\t\t: fpu amx_bf16 avx512_bf16\n"
    assert [results.processor(text) for text in (epyc, xeon)] == results.KNOWN_PROCESSORS
    assert results.processor("flags: fpu\n") == "unknown processor (no bfloat16 products)"


def check_page():
    row = {"name": "decode [tokens/s], against peer", "ours": 25.0, "peer": 20.0, "ratio": 1.25, "least_ratio": 1.0,
           "most_ratio": 3.0, "limit_fraction": 0.25, "peak_mebibytes": 50, "ratio_target": 2, "fraction_target": 0.2}
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "models.md"
        results.Results(out).add(row, "Two processors.")
        out.write_text(out.read_text() + "By hand.\n")
        again = results.Results(out)
        again.add(row | {"name": "prefill [tokens/s]", "ratio": None}, "Two processors.")
        text = out.read_text()
        assert text.endswith("By hand.\n") and text.count("By hand.") == 1
        assert "| 25.0 | 20.0 | 1.25 (**aim 2**) | 1.00 to 3.00 | 0.25 (aim 0.2) | 50.0 |" in text, text
        assert set(again.rows()) == {row["name"], "prefill [tokens/s]"}
        for name in results.KNOWN_PROCESSORS:
            assert name == again.here or f"## {name}\n\nNot measured." in text


def check_cases():
    everything = cases.all_cases()
    names = [figure.name for case in everything for figure in case.figures]
    assert len(set(names)) == len(names)
    models.installed = lambda peers: peers
    options = types.SimpleNamespace(small=False, only="prefill", missing=False)
    assert len(models.wanted_cases(options, {})) == sum(name.startswith("prefill") for name in names) > 0
    case = next(c for c in everything if len(c.peers) == 2 and len(c.figures) == 2)
    rows = {results.row_name(f, case.peers[0]) for f in case.figures} | {results.row_name(case.figures[0], case.peers[1])}
    assert models.with_missing_peers(case, {}).peers == case.peers
    assert models.with_missing_peers(case, rows).peers == case.peers[1:]
    assert models.with_missing_peers(case, rows | {results.row_name(case.figures[1], case.peers[1])}) is None


check_limits_against_the_weights_one_by_one()
check_limits_of_each_kind_of_layer()
check_rows()
check_processors()
check_page()
check_cases()
