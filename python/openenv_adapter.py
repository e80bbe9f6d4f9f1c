"""Environments of OpenEnv for Carnot, over its own client. Tried with openenv-core 0.3.0.

    env:
      name: process
      command: [python3, python/openenv_adapter.py]
      settings: ["url=http://localhost:8000", max_turns=10]

Start the environment's server first, with a session for every concurrent episode:
`create_app(..., max_concurrent_envs=512)`; OpenEnv's default is one.

Settings:
    url        of the server
    prompt     what it is about, shown first
    max_turns  of an episode; default: 10
    field      of the action that the answer fills; default: its only field, or else the answer is a JSON object
    show       the observation's field to show; default: all
    replay     true if a seed and the same actions always lead to the same observations
All other settings go to the environment's reset(), with the task's seed.

An environment of MCP tools (its action is a tool call) offers them to the policy as tools. A response that calls none
ends the episode. In any other environment the action is the text between <answer> and </answer>. The rewards of the
steps are those of the turns. An episode is a success if the last reward is positive.
"""
import functools
import json
import urllib.request

from openenv.core import GenericEnvClient

from carnot_environment import Environment, Prompt, Reply, Tool, serve


@functools.lru_cache(maxsize=None)
def action_fields(url):
    """JSON schemas of the fields that a policy fills, and the names of the required ones."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url.rstrip("/") + "/schema", timeout=60) as answer:
        schema = json.load(answer)["action"]
    fields = {name: field for name, field in schema.get("properties", {}).items() if name != "metadata"}
    return fields, [name for name in schema.get("required", ()) if name in fields]


class OpenEnv(Environment):
    def __init__(self, url, prompt="", max_turns=10, field="", show="", replay=False, **reset):
        self.url, self.prompt, self.max_turns, self.show = url, prompt, max_turns, show
        self.replay, self.reset_arguments = replay, reset
        self.fields, self.required = action_fields(url)
        self.is_tool_world = not self.fields or "tool_name" in self.fields
        self.field = field or (list(self.fields)[0] if len(self.fields) == 1 else "")
        if self.field and self.field not in self.fields:
            raise ValueError("field: the action has %s, not %s" % (", ".join(self.fields), self.field))
        self.client, self.total, self.last_reward = None, 0.0, 0.0

    async def reset(self, task):
        self.client = await GenericEnvClient(base_url=self.url).connect()
        # Odd seeds are for validation, so that the splits never share a task. 31 bits: some environments accept no
        # more.
        seed = 2 * (task.seed % 2**30) + (task.split == "validation")
        result = await self.client.reset(seed=seed, **self.reset_arguments)
        texts = [self.prompt, self.shown(result.observation)]
        if not self.is_tool_world:
            return "\n\n".join(text for text in texts + [self.legal_actions()] if text)
        offered = (await self.client.step({"type": "list_tools"})).observation["tools"]
        tools = [Tool(tool["name"], tool["description"], tool["input_schema"]) for tool in offered]
        return Prompt("\n\n".join(text for text in texts if text) or "Use the tools.", tools=tools)

    async def step(self, response):
        if self.is_tool_world:
            return await self.step_with_tools(response)
        action = self.action(response.tag("answer"))
        try:
            result = None if action is None else await self.client.step(action)
        except RuntimeError as error:
            if "(code: VALIDATION_ERROR)" not in str(error):
                raise
            result = None
        if result is None:
            return Reply("That is not an action. " + self.legal_actions(), penalty=-0.1, valid_action=False)
        return await self.reply(self.reward_of(result), result.done, text=self.shown(result.observation))

    async def step_with_tools(self, response):
        if not response.tool_calls:
            return await self.reply(0.0, True, valid_action=not response.problem)
        results, reward, done = [], 0.0, False
        for call in response.tool_calls:
            if done:
                results.append("The episode is over.")
                continue
            action = {"type": "call_tool", "tool_name": call.name, "arguments": call.arguments}
            result = await self.client.step(action)
            results.append(self.shown_tool_result(result.observation))
            reward, done = reward + self.reward_of(result), result.done
        return await self.reply(reward, done, results=results, tool=response.tool_calls[0].name)

    async def reply(self, reward, done, **shown):
        if not done:
            return Reply(reward=reward, **shown)
        await self.close()
        return Reply(reward=reward, done=True, success=self.last_reward > 0, measures={"return": self.total}, **shown)

    async def close(self):
        client, self.client = self.client, None
        if client is not None:
            await client.close()

    def reward_of(self, result):
        self.last_reward = float(result.reward or 0.0)
        self.total += self.last_reward
        return self.last_reward

    def shown(self, observation):
        fields = {key: value for key, value in observation.items() if key not in ("metadata", "reward", "done")}
        if self.show:
            fields = {self.show: fields[self.show]}
        texts = {key: one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)
                 for key, one in fields.items()}
        return "\n".join(texts.values() if len(texts) == 1 else ("%s: %s" % item for item in texts.items()))

    def shown_tool_result(self, observation):
        if observation.get("error"):
            return "Error: %s" % observation["error"]["message"]
        result = observation.get("result")
        # FastMCP's result: the value itself is in `data`.
        result = result["data"] if isinstance(result, dict) and "data" in result else result
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)

    def legal_actions(self):
        if not self.field:
            return "Answer with a JSON object of this schema, like this: <answer>{...}</answer>\n" + json.dumps(
                {"type": "object", "properties": self.fields, "required": self.required})
        field = self.fields[self.field]
        about = "%s: %s. " % (self.field, field["description"]) if field.get("description") else ""
        return about + "Answer like this: <answer>%s</answer>" % self.field

    def action(self, answer):
        """The action that `answer` names; None if it cannot be parsed."""
        if answer is None:
            return None
        if self.field and self.fields[self.field].get("type") == "string":
            return {self.field: answer}
        try:
            value = json.loads(answer)
        except ValueError:
            return None
        action = {self.field: value} if self.field else value
        is_action = isinstance(action, dict) and set(self.required) <= set(action) <= set(self.fields)
        return action if is_action else None


if __name__ == "__main__":
    serve(OpenEnv)
