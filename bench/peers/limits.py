"""The least that passes of a model read and compute, and how long that takes on a machine at best."""
import dataclasses


@dataclasses.dataclass
class Machine:
    read: float  # bytes per second
    bfloat16: float  # operations per second
    float32: float


class Work:
    """The least that passes of a model's shape read and compute, in bfloat16."""

    def __init__(self, config):
        hidden, width = config["hidden_size"], config["intermediate_size"]
        head_size = config.get("head_dim", hidden // config["num_attention_heads"])
        queries, keys = head_size * config["num_attention_heads"], head_size * config["num_key_value_heads"]
        self.layers = config["num_hidden_layers"]
        self.blocks = self.layers * (2 * hidden * queries + 2 * hidden * keys + 3 * hidden * width)
        self.head = config["vocab_size"] * hidden
        self.queries = queries
        self.cached_bytes = 2 * self.layers * keys * 2  # of a position

    def decode_seconds(self, machine, sequences, context, distinct=None):
        """One step; `distinct` positions of the cache are read, or all of each sequence."""
        weights = self.blocks + self.head
        read = 2 * weights + self.cached_bytes * (sequences * context if distinct is None else distinct)
        computed = 2 * weights * sequences + 4 * self.layers * self.queries * sequences * context
        return max(read / machine.read, computed / machine.bfloat16)

    def prefill_seconds(self, machine, sequences, length):
        computed = 2 * self.blocks * sequences * length + 2 * self.layers * self.queries * sequences * length**2
        return max(2 * self.blocks / machine.read, (computed + 2 * self.head * sequences) / machine.bfloat16)

    def answers_seconds(self, machine, prompt, answers, tokens):
        steps = (self.decode_seconds(machine, answers, prompt + t, prompt + answers * t) for t in range(1, tokens))
        return self.prefill_seconds(machine, 1, prompt) + sum(steps)

    def train_seconds(self, machine, lengths, counted):
        """The head's products are 8: its logits are computed again for the gradient."""
        tokens, squares = sum(lengths), sum(n * n for n in lengths)
        heads = sum(int(counted * n) for n in lengths)
        computed = 6 * self.blocks * tokens + 6 * self.layers * self.queries * squares + 8 * self.head * heads
        return computed / machine.bfloat16

    def statistics_seconds(self, machine, tokens, gradient):
        return (8 if gradient else 2) * self.head * tokens / machine.bfloat16
