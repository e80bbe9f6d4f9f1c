"""A whole environment: the policy guesses a number. Recipe: env: {name: process, command: [python3, guess_number.py]}"""
from carnot_environment import Environment, Reply, serve


class GuessNumber(Environment):
    max_turns = 6

    def reset(self, task):
        self.hidden = 1 + task.seed % 20
        return "I think of a number from 1 to 20. Answer like this: <answer>5</answer>"

    def step(self, response):
        guess = response.tag("answer")
        if guess == str(self.hidden):
            return Reply(reward=1, done=True, success=True)
        if not guess or not guess.isdigit():
            return Reply("That is not a number.", penalty=-0.1, valid_action=False)
        return "Too low." if int(guess) < self.hidden else "Too high."


serve(GuessNumber)
