"""A taskset whose environment answers each turn (verifiers 0.4)."""
import verifiers.v1 as vf


class GuessData(vf.TaskData):
    number: int


class GuessTask(vf.Task[GuessData, vf.State, vf.TaskConfig]):
    pass


class GuessTaskset(vf.Taskset[GuessTask, vf.TasksetConfig]):
    def load(self):
        for i in range(20):
            yield GuessTask(GuessData(prompt="Guess my number from 1 to 20.", number=i + 1), self.config.task)


class GuessEnvConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig()


class GuessEnv(vf.Env[GuessEnvConfig]):
    async def run(self, task, agents):
        won = False
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                guess = int(segment.last_reply)
                won = guess == task.data.number
                if won:
                    break
                segment = await interaction.turn("Too low." if guess < task.data.number else "Too high.")
        interaction.trace.record_reward("won", float(won), 1.0)


__all__ = ["GuessEnv", "GuessTaskset"]
