"""A taskset with a tool (verifiers 0.4)."""
import verifiers.v1 as vf


class SumsToolset(vf.Toolset[vf.ToolsetConfig]):
    TOOL_PREFIX = None

    @vf.tool
    def add(self, a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b


class SumsData(vf.TaskData):
    answer: str


class SumsTaskConfig(vf.TaskConfig):
    tools: vf.ToolsetConfig = vf.ToolsetConfig()


class SumsTask(vf.Task[SumsData, vf.State, SumsTaskConfig]):
    @classmethod
    def toolsets(cls, config):
        return [SumsToolset(config.tools)]

    @vf.reward(weight=1.0)
    async def correct(self, trace: vf.Trace) -> float:
        return float(self.data.answer in trace.last_reply)

    @vf.metric
    async def length(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply))


class SumsConfig(vf.TasksetConfig):
    rows: int = 10
    task: SumsTaskConfig = SumsTaskConfig()


class SumsTaskset(vf.Taskset[SumsTask, SumsConfig]):
    def load(self):
        for i in range(self.config.rows):
            data = SumsData(prompt="What is %d + 4?" % i, system_prompt="Be brief.", answer=str(i + 4))
            yield SumsTask(data, self.config.task)


__all__ = ["SumsTaskset"]

if __name__ == "__main__":
    SumsToolset.run()
