"""A whole environment: the policy buys what is on a list, from memory. Recipe: examples/environment/shopping.yaml"""
import random

from carnot_environment import Environment, Reply, serve


class Shopping(Environment):
    things = ("bread", "milk", "eggs", "tea", "salt", "rice")
    tokenizer_words = things + ("buy", "bought", "no", "user", "assistant")
    max_turns, max_response_tokens = 3, 1

    def reset(self, task):
        self.missing = random.Random(task.seed).sample(self.things, 3)
        return "buy " + " ".join(self.missing)

    def step(self, response):
        if response.strip() not in self.missing:
            return "no"
        self.missing.remove(response.strip())
        return Reply("bought", reward=1 / 3, done=not self.missing, success=not self.missing)


serve(Shopping)
