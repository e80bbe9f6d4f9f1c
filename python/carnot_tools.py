"""Tools for Carnot from your Python functions: `env.tools: ["my_tools.py:search"]` in a recipe.

    def search(query: str, limit: int = 3) -> str:
        '''Searches the web.

        Args:
            query: what to look for
            limit: how many results to show
        '''
        return my_engine.search(query)[:limit]

The name, the type hints and the docstring (Google's or reST's style) become the policy's description of the tool.
Results other than a str are returned as JSON. An exception is an error that the policy reads and can react to; but
ConnectionError, TimeoutError, exceptions caused by them, and Unavailable are infrastructure failures, and the
trajectory does not count.

Functions are called from several threads concurrently; those that are `async def` share one event loop. A function that
changes what later calls see says so with `function.changes_state = True`: rollouts then do not branch.

Carnot starts this file; import only Unavailable.
"""

import collections.abc
import dataclasses
import enum
import inspect
import json
import re
import sys
import types
import typing

import carnot_protocol


class Unavailable(Exception):
    """Something that the tool needs is unavailable: not the policy's fault."""


# ---- what the policy sees

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", dict: "object",
          list: "array", tuple: "array"}
_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_UNIONS = (typing.Union,) + ((types.UnionType,) if hasattr(types, "UnionType") else ())
_LITERAL = getattr(typing, "Literal", None)


def schema_of(hint):
    """The JSON schema of a type hint."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hasattr(hint, "__metadata__"):
        notes = [note for note in hint.__metadata__ if isinstance(note, str)]
        return dict(schema_of(arguments[0]), **({"description": notes[0]} if notes else {}))
    if origin is _LITERAL:
        return _choices(arguments)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _choices([one.value for one in hint])
    if origin in _UNIONS:
        return _any_of([schema_of(one) for one in arguments])
    if origin in _LISTS or hint in _LISTS:
        items = [one for one in arguments if one is not Ellipsis]
        if origin is tuple and len(items) > 1:
            return {"type": "array", "items": [schema_of(one) for one in items], "minItems": len(items),
                    "maxItems": len(items)}
        return dict({"type": "array"}, **({"items": schema_of(items[0])} if items else {}))
    if origin in _DICTS or hint in _DICTS:
        return dict({"type": "object"}, **({"additionalProperties": schema_of(arguments[1])} if arguments else {}))
    if dataclasses.is_dataclass(hint):
        hints = _hints(hint)
        required = [f.name for f in dataclasses.fields(hint)
                    if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
        return {"type": "object", "properties": {f.name: schema_of(hints[f.name]) for f in dataclasses.fields(hint)},
                "required": required, "additionalProperties": False}
    if isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__"):
        hints = _hints(hint)
        return {"type": "object", "properties": {name: schema_of(one) for name, one in hints.items()},
                "required": sorted(getattr(hint, "__required_keys__", hints))}
    raise TypeError("the type %s; known: str, int, float, bool, list, dict, tuple, Optional, Union, Literal, Enum, "
                    "dataclasses, TypedDict, Annotated, Any" % (getattr(hint, "__name__", None) or hint,))


def _choices(values):
    kinds = {_PLAIN.get(type(value)) for value in values}
    if len(kinds) == 1 and None not in kinds:
        return {"type": kinds.pop(), "enum": list(values)}
    return {"enum": list(values)}


def _any_of(schemas):
    """Plain types become a list of types, which most chat templates can write."""
    if all(set(one) == {"type"} and isinstance(one["type"], str) for one in schemas):
        return {"type": [one["type"] for one in schemas]}
    return {"anyOf": schemas}


def _hints(thing):
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except TypeError:  # Python 3.8
        return typing.get_type_hints(thing)


_GOOGLE_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns?|Raises|Yields?|Examples?|Notes?):\s*$")
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_REST_FIELD = re.compile(r"^:(\w+)([^:]*):\s*(.*)$")


def docstring_of(function):
    """What the docstring says about the function, and about each parameter."""
    text, about, parameters = inspect.getdoc(function) or "", [], {}
    section, indent, name = None, None, None
    for line in text.splitlines():
        bare, depth = line.strip(), len(line) - len(line.lstrip())
        heading, field = _GOOGLE_SECTION.match(line), _REST_FIELD.match(bare)
        if heading:
            section, indent, name = heading.group(1), None, None
        elif field:
            section, name = "field", None
            if field.group(1) in ("param", "parameter", "arg", "argument") and field.group(2).strip():
                name = field.group(2).split()[-1]
                parameters[name] = field.group(3)
        elif section is None:
            about.append(bare)
        elif section == "field":
            if name and bare and depth:
                parameters[name] += " " + bare
        elif bare and not depth:
            section = None
            about.append(bare)
        elif section in ("Args", "Arguments", "Parameters") and bare:
            indent = depth if indent is None else indent
            entry = _GOOGLE_ENTRY.match(bare) if depth <= indent else None
            if entry:
                name = entry.group(1)
                parameters[name] = entry.group(2)
            elif name:
                parameters[name] += " " + bare
    paragraphs = "\n".join(about).strip().split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in paragraphs), {k: v.strip() for k, v in parameters.items()}


def describe(function, spec):
    """Name, description and schema; a TypeError says what the function lacks."""
    description, documented = docstring_of(function)
    hints = _hints(function)
    properties, required = {}, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError("%s: parameter %s: expected one that is passed by its name" % (spec, parameter))
        if parameter.name not in hints:
            raise TypeError("%s: parameter %s has no type hint, as in %s: str" % (spec, parameter.name, parameter.name))
        try:
            schema = schema_of(hints[parameter.name])
        except TypeError as error:
            raise TypeError("%s: parameter %s has %s" % (spec, parameter.name, error)) from None
        if documented.get(parameter.name):
            schema["description"] = documented[parameter.name]
        default = parameter.default.value if isinstance(parameter.default, enum.Enum) else parameter.default
        if default is parameter.empty:
            required.append(parameter.name)
        elif isinstance(default, (str, int, float, bool)):
            schema["default"] = default
        properties[parameter.name] = schema
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": function.__name__, "description": description, "parameters": schema,
            "changes_state": bool(getattr(function, "changes_state", False))}


# ---- calls

def value_of(hint, value):
    """The JSON value as its hint's type: an Enum's member, a dataclass, a tuple."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(hint, "__metadata__"):
        return value_of(arguments[0], value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if origin in _UNIONS:
        for one in arguments:
            if _is_of(one, value):
                return value_of(one, value)
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list) and (origin in _LISTS or hint in _LISTS):
        items = [one for one in arguments if one is not Ellipsis]
        hints = items if origin is tuple and len(items) > 1 else [items[0] if items else typing.Any] * len(value)
        made = [value_of(one, each) for one, each in zip(hints, value)]
        kind = origin or hint
        return kind(made) if kind in (tuple, set, frozenset) else made
    if isinstance(value, dict) and dataclasses.is_dataclass(hint):
        hints = _hints(hint)
        return hint(**{name: value_of(hints[name], each) for name, each in value.items()})
    if isinstance(value, dict) and origin in _DICTS and arguments:
        return {name: value_of(arguments[1], each) for name, each in value.items()}
    return value


def _is_of(hint, value):
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None),
             "object": dict, "array": list}
    schema = schema_of(hint)
    if "enum" in schema:
        return value in schema["enum"]
    kind = kinds.get(schema.get("type"), object) if isinstance(schema.get("type", ""), str) else object
    return isinstance(value, kind) and not (isinstance(value, bool) and kind in (int, (int, float)))


def text_of(value):
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return str(value)


def is_of_the_machinery(error):
    """Whether the exception, or one that led to it, says that something is unavailable."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, (ConnectionError, TimeoutError, MemoryError, Unavailable)):
            return True
        seen.add(id(error))
        reason = getattr(error, "reason", None)
        error = error.__cause__ or error.__context__ or (reason if isinstance(reason, BaseException) else None)
    return False


class ToolServer(carnot_protocol.Server):
    def __init__(self, specs):
        super().__init__()
        self.at_once = True
        self.functions, self.hints, self.problem = {}, {}, None
        try:
            self.descriptions = [self.add(spec) for spec in specs]
        except BaseException as error:
            self.problem = error

    def add(self, spec):
        function = carnot_protocol.load(spec)
        description = describe(function, spec)
        if description["name"] in self.functions:
            raise ValueError("%s: there is a function %s already" % (spec, description["name"]))
        self.functions[description["name"]] = function
        hints = _hints(function)
        self.hints[description["name"]] = {name: hints[name] for name in description["parameters"]["properties"]}
        return description

    def is_for_the_loop(self, request):
        return inspect.iscoroutinefunction(self.functions.get(request.get("tool")))

    async def hello(self, request):
        if self.problem is not None:
            raise self.problem
        # A schema is sent as a string: the policy reads its keys in this order.
        tools = [dict(one, parameters=json.dumps(one["parameters"], ensure_ascii=False)) for one in self.descriptions]
        return {"protocol": carnot_protocol.PROTOCOL, "tools": tools}

    async def call(self, request):
        hints = self.hints[request["tool"]]
        unknown = [name for name in request["arguments"] if name not in hints]
        if unknown:
            return {"text": "Error: no parameter %s; there is: %s" % (", ".join(unknown), ", ".join(hints)),
                    "status": "bad_arguments"}
        try:
            arguments = {name: value_of(hints[name], value) for name, value in request["arguments"].items()}
            made = self.functions[request["tool"]](**arguments)
            if inspect.iscoroutine(made):
                is_in_the_loop = self.is_for_the_loop(request)
                made = await made if is_in_the_loop else carnot_protocol.start(made).result()
            return {"text": text_of(made)}
        except Exception as error:
            if is_of_the_machinery(error):
                raise
            return {"text": "Error: %s: %s" % (type(error).__name__, error), "status": "error"}


if __name__ == "__main__":
    # The one module that tools may import Unavailable from.
    sys.modules["carnot_tools"] = sys.modules["__main__"]
    carnot_protocol.answer_forever(ToolServer(sys.argv[1:]))
