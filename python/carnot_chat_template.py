"""Renders a model's chat template (Jinja) for Carnot, as transformers' apply_chat_template does.

Carnot starts this file with a Python that has jinja2; nothing in it is for users. The engine is the one that
transformers uses, set up in the same way: a sandbox whose values cannot be changed, `trim_blocks`, `lstrip_blocks`,
loop controls, `raise_exception`, a `tojson` without HTML escapes, the tag `generation`, no underscore attributes in a
namespace. Three things differ: `strftime_now` always answers for 26 July 2024, so that a prompt is the same tomorrow,
templates that can keep earlier thinking are told to, and the memory of this process is limited.
"""

import datetime
import json
import resource
import sys

import carnot_protocol

OLDEST_JINJA = (3, 1, 6)  # earlier sandboxes have known escapes
DAY = datetime.datetime(2024, 7, 26)
MOST_MEMORY = 1 << 30
MOST_CHARACTERS = 4_000_000


def import_jinja():
    advice = "; install it with: %s -m pip install jinja2==3.1.6" % sys.executable
    try:
        import jinja2
        import jinja2.ext
        import jinja2.sandbox
    except ImportError as error:
        raise RuntimeError("%s%s" % (error, advice)) from None
    found = tuple(int(part) for part in jinja2.__version__.split(".")[:3] if part.isdigit())
    if found < OLDEST_JINJA:
        raise RuntimeError("jinja2 %s is older than 3.1.6%s" % (jinja2.__version__, advice))
    return jinja2


def environment(jinja2):
    class Generation(jinja2.ext.Extension):
        """{% generation %} ... {% endgeneration %}: its body."""

        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("body_of"), [], [], body).set_lineno(line)

        def body_of(self, caller):
            return caller()

    class Namespace(jinja2.utils.Namespace):
        def __init__(*args, **kwargs):
            attributes = dict(*args[1:], **kwargs)
            for name in attributes:
                Namespace.check(name)
            jinja2.utils.Namespace.__init__(args[0], attributes)

        def __setitem__(self, name, value):
            Namespace.check(name)
            jinja2.utils.Namespace.__setitem__(self, name, value)

        @staticmethod
        def check(name):
            if isinstance(name, str) and name.startswith("_"):
                raise jinja2.exceptions.SecurityError("a namespace has no attribute %r: it begins with _" % name)

    class Dict:
        def __call__(self, *args, **kwargs):
            return dict(*args, **kwargs)

        def fromkeys(self, *args, **kwargs):
            return dict.fromkeys(*args, **kwargs)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals.update(raise_exception=raise_exception, strftime_now=DAY.strftime, dict=Dict(), namespace=Namespace)
    return made


# History only grows, so templates that can keep earlier thinking do.
KEEPING_THOUGHTS = {"preserve_thinking": True, "keep_past_thinking": True, "clear_thinking": False}


def variables_of(one):
    """What a template is told of a conversation, beyond the tokens."""
    messages = [message_of(message) for message in one["messages"]]
    tools = [json.loads(tool) for tool in one["tools"]] or None
    if tools and one["tools_in_system"]:
        messages, tools = with_tools_in_system(messages, tools), None
    told = dict(KEEPING_THOUGHTS, messages=messages, tools=tools, documents=None, add_generation_prompt=one["generate"])
    if tools:
        told["xml_tools"] = tools  # SmolLM3's name for them
    if "thinking" in one:
        told.update(enable_thinking=one["thinking"], thinking=one["thinking"])
    return told


def with_tools_in_system(messages, tools):
    """The functions as a text in the system message, for Phi-4-mini; its authors' message if there is no other."""
    if not messages or messages[0]["role"] != "system":
        messages = [{"role": "system", "content": "You are a helpful assistant with some tools."}] + messages
    text = json.dumps([tool["function"] for tool in tools], ensure_ascii=False)
    return [dict(messages[0], tools=text)] + messages[1:]


def message_of(one):
    """The form that transformers expects: arguments are objects, and absent fields have no key."""
    message = {"role": one["role"], "content": one["content"]}
    if one.get("tool_calls"):
        message["tool_calls"] = [call_of(call) for call in one["tool_calls"]]
    if one.get("tool_call_id"):
        message["tool_call_id"] = one["tool_call_id"]
    return message


def call_of(one):
    call = {"type": "function", "function": {"name": one["name"], "arguments": json.loads(one["arguments"])}}
    return dict(call, id=one["id"]) if one.get("id") else call


class TemplateServer(carnot_protocol.Server):
    def __init__(self):
        super().__init__()
        self.template, self.tokens = None, {}

    async def hello(self, request):
        jinja2 = import_jinja()
        try:
            self.template = environment(jinja2).from_string(request["template"])
        except jinja2.TemplateSyntaxError as error:
            raise ValueError("line %d of the template: %s" % (error.lineno, error.message)) from None
        self.tokens = request["tokens"]
        return {"protocol": carnot_protocol.PROTOCOL}

    async def render(self, request):
        return {"rendered": [self.rendered(one) for one in request["conversations"]]}

    def rendered(self, one):
        try:
            text = self.template.render(**self.tokens, **variables_of(one))
        except MemoryError:
            return {"refused": "it needs more than %d MB of memory" % (MOST_MEMORY >> 20)}
        except RecursionError:
            return {"refused": "it calls itself endlessly"}
        except Exception as error:
            return {"refused": str(error)[:1000] or type(error).__name__}
        if len(text) > MOST_CHARACTERS:
            return {"refused": "it wrote %d characters; expected at most %d" % (len(text), MOST_CHARACTERS)}
        return {"text": text}

    def failure(self, request, error):
        return json.dumps({"id": request.get("id", -1), "error": str(error)})


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    carnot_protocol.answer_forever(TemplateServer())
