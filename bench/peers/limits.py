"""The least that passes of a model read and compute, and how long that takes on a machine at best."""
import dataclasses


@dataclasses.dataclass
class Machine:
    read: float  # bytes per second
    bfloat16: float  # operations per second
    float32: float


@dataclasses.dataclass
class Layer:
    """What one layer has: numbers of weights and of what is kept, and multiply-adds of one row beside its weights'."""

    weights: int  # that one row is multiplied with
    of_expert: int = 0  # weights, `chosen` times in `weights`
    experts: int = 0
    chosen: int = 0
    cached: int = 0  # of a position
    window: int = 0  # positions that a row sees; 0: all
    scores: int = 0  # multiply-adds of a row with one position that it sees, twice: scores and sums
    state: int = 0  # of a sequence: read and written by each row, in float32

    def seen(self, context):
        return min(context, self.window) if self.window else context

    def read(self, sequences):
        """Weights that a step of this many rows reads, if the rows' experts differ as much as they can."""
        return self.weights + self.of_expert * (min(self.experts, self.chosen * sequences) - self.chosen)


def mixer_of(config, kind):
    hidden = config["hidden_size"]
    if kind == "conv":
        return Layer(weights=4 * hidden * hidden, cached=hidden)
    if kind == "linear_attention":
        heads, key, value = (config[f"linear_{name}"] for name in ("num_value_heads", "key_head_dim", "value_head_dim"))
        keys, values = config["linear_num_key_heads"] * key, heads * value
        return Layer(weights=hidden * (2 * keys + 3 * values + 2 * heads), state=heads * key * value)
    head_size = config.get("head_dim") or hidden // config["num_attention_heads"]
    queries, keys = head_size * config["num_attention_heads"], head_size * config["num_key_value_heads"]
    gates = queries if config["model_type"] == "qwen3_5_text" else 0
    return Layer(weights=hidden * (2 * queries + gates + 2 * keys), cached=2 * keys, scores=2 * queries,
                 window=config["sliding_window"] if kind == "sliding_attention" else 0)


def layers_of(config):
    hidden, count = config["hidden_size"], config["num_hidden_layers"]
    for kind in config.get("layer_types") or ["full_attention"] * count:
        layer = mixer_of(config, kind)
        if experts := config.get("num_experts"):
            layer.experts, layer.chosen = experts, config["num_experts_per_tok"]
            layer.of_expert = 3 * hidden * config["moe_intermediate_size"]
            layer.weights += layer.chosen * layer.of_expert + experts * hidden
        else:
            layer.weights += 3 * hidden * config["intermediate_size"]
        yield layer


class Work:
    """The least that passes of a model's shape read and compute, in bfloat16."""

    def __init__(self, config):
        self.layers = list(layers_of(config))
        self.head = config["vocab_size"] * config["hidden_size"]

    def total(self, number):
        return sum(number(layer) for layer in self.layers)

    def blocks(self):
        return self.total(lambda layer: layer.weights)

    def rows_computed(self, rows):
        """Of rows that see nothing of each other: weights, and states, which are decayed, read and updated."""
        return rows * self.total(lambda layer: 2 * layer.weights + 7 * layer.state)

    def decode_seconds(self, machine, sequences, context, distinct=None):
        """One step; `distinct` positions of the cache are read, or all of each sequence."""
        read = 2 * (self.head + self.total(lambda layer: layer.read(sequences)))
        read += 2 * self.total(lambda layer: layer.cached * (sequences * layer.seen(context) if distinct is None
                                                             else distinct))
        read += 8 * sequences * self.total(lambda layer: layer.state)
        computed = self.rows_computed(sequences) + 2 * self.head * sequences
        computed += 2 * sequences * self.total(lambda layer: layer.scores * layer.seen(context))
        return max(read / machine.read, computed / machine.bfloat16)

    def attended(self, length):
        """Multiply-adds of a sequence's rows with the positions that they see, twice."""
        return self.total(lambda layer: layer.scores * (length * layer.seen(length) - layer.seen(length) ** 2 / 2))

    def prefill_seconds(self, machine, sequences, length):
        computed = sequences * (self.rows_computed(length) + 2 * self.attended(length) + 2 * self.head)
        read = 2 * self.total(lambda layer: layer.read(sequences * length))
        return max(read / machine.read, computed / machine.bfloat16)

    def answers_seconds(self, machine, prompt, answers, tokens):
        steps = (self.decode_seconds(machine, answers, prompt + t, prompt + answers * t) for t in range(1, tokens))
        return self.prefill_seconds(machine, 1, prompt) + sum(steps)

    def train_seconds(self, machine, lengths, counted):
        """The head's products are 8: its logits are computed again for the gradient."""
        heads = sum(int(counted * n) for n in lengths)
        computed = 3 * self.rows_computed(sum(lengths)) + 6 * sum(map(self.attended, lengths)) + 8 * self.head * heads
        return computed / machine.bfloat16

    def statistics_seconds(self, machine, tokens, gradient):
        return (8 if gradient else 2) * self.head * tokens / machine.bfloat16
