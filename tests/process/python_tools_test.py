"""What python/carnot_tools.py makes of functions: schemas, descriptions, arguments, results. Needs no package."""
import dataclasses
import enum
import os
import sys
import typing
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import carnot_tools


class Unit(enum.Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


@dataclasses.dataclass
class Place:
    city: str
    height: float = 0.0


def schema(hint):
    return carnot_tools.schema_of(hint)


class Schemas(unittest.TestCase):
    def test_plain_types(self):
        self.assertEqual([schema(one)["type"] for one in (str, int, float, bool, list, dict)],
                         ["string", "integer", "number", "boolean", "array", "object"])
        self.assertEqual(schema(typing.Any), {})

    def test_types_of_types(self):
        self.assertEqual(schema(typing.List[int]), {"type": "array", "items": {"type": "integer"}})
        self.assertEqual(schema(typing.Dict[str, bool]),
                         {"type": "object", "additionalProperties": {"type": "boolean"}})
        self.assertEqual(schema(typing.Tuple[int, str])["items"], [{"type": "integer"}, {"type": "string"}])
        self.assertEqual(schema(typing.Tuple[int, ...]), {"type": "array", "items": {"type": "integer"}})

    def test_choices(self):
        self.assertEqual(schema(typing.Optional[int]), {"type": ["integer", "null"]})
        self.assertEqual(schema(typing.Union[int, typing.List[int]])["anyOf"][1]["type"], "array")
        self.assertEqual(schema(Unit), {"type": "string", "enum": ["celsius", "kelvin"]})
        if hasattr(typing, "Literal"):
            self.assertEqual(schema(typing.Literal["a", "b"]), {"type": "string", "enum": ["a", "b"]})
            self.assertEqual(schema(typing.Literal["a", 1]), {"enum": ["a", 1]})

    def test_dataclasses(self):
        self.assertEqual(schema(Place), {"type": "object", "required": ["city"], "additionalProperties": False,
                                         "properties": {"city": {"type": "string"}, "height": {"type": "number"}}})

    def test_other_types_are_refused_by_name(self):
        with self.assertRaisesRegex(TypeError, "the type TestCase; known: str, int"):
            schema(unittest.TestCase)


class Descriptions(unittest.TestCase):
    def test_of_googles_style(self):
        def search(query: str, limit: int = 3) -> str:
            """Searches the web.
            In two lines.

            And a paragraph.

            Args:
                query (str): what to look for,
                    in words
                limit: how many

            Returns:
                query: the results
            """

        made = carnot_tools.describe(search, "f")
        self.assertEqual((made["name"], made["description"]),
                         ("search", "Searches the web. In two lines.\n\nAnd a paragraph."))
        self.assertEqual(made["parameters"], {
            "type": "object", "required": ["query"], "properties": {
                "query": {"type": "string", "description": "what to look for, in words"},
                "limit": {"type": "integer", "description": "how many", "default": 3}}})

    def test_of_rests_style(self):
        def place(city: str, unit: Unit = Unit.KELVIN):
            """Finds a place.

            :param city: its name,
                in English
            :param Unit unit: of the temperature
            :returns: the city
            """

        properties = carnot_tools.describe(place, "f")["parameters"]["properties"]
        self.assertEqual(properties["city"]["description"], "its name, in English")
        self.assertEqual((properties["unit"]["description"], properties["unit"]["default"]),
                         ("of the temperature", "kelvin"))

    def test_of_hints_that_are_strings(self):
        def f(a: "typing.Optional[int]" = None):
            pass

        self.assertEqual(carnot_tools.describe(f, "f")["parameters"]["properties"]["a"]["type"], ["integer", "null"])

    def test_what_cannot_be_offered_is_refused(self):
        def bare(query):
            pass

        def rest(*words: str):
            pass

        with self.assertRaisesRegex(TypeError, "f: parameter query has no type hint, as in query: str"):
            carnot_tools.describe(bare, "f")
        with self.assertRaisesRegex(TypeError, "passed by its name"):
            carnot_tools.describe(rest, "f")


class Calls(unittest.TestCase):
    def test_arguments_are_what_the_hints_say(self):
        value = carnot_tools.value_of
        self.assertEqual(value(Place, {"city": "Lima", "height": 3}), Place("Lima", 3.0))
        self.assertIsInstance(value(float, 3), float)
        self.assertEqual(value(typing.List[Unit], ["kelvin"]), [Unit.KELVIN])
        self.assertEqual(value(typing.Optional[Place], {"city": "Lima"}), Place("Lima"))
        self.assertIsNone(value(typing.Optional[Place], None))
        self.assertEqual(value(typing.Tuple[int, Unit], [1, "celsius"]), (1, Unit.CELSIUS))
        self.assertEqual(value(typing.Dict[str, Unit], {"a": "kelvin"}), {"a": Unit.KELVIN})
        self.assertEqual(value(typing.Union[int, str], "5"), "5")

    def test_results_are_text_or_json(self):
        self.assertEqual([carnot_tools.text_of(one) for one in ("a", None, 1.5, [1, "\u00e4"], Place("Lima"))],
                         ["a", "", "1.5", '[1, "\u00e4"]', '{"city": "Lima", "height": 0.0}'])

    def test_infrastructure_failures_are_distinguished_from_others(self):
        def raised(*errors):
            """The last one, each raised while the one before was handled."""
            try:
                if len(errors) > 1:
                    try:
                        raise raised(*errors[:-1])
                    except Exception:
                        raise errors[-1]
                raise errors[0]
            except Exception as error:
                return error

        away = carnot_tools.is_of_the_machinery
        self.assertTrue(away(raised(ConnectionResetError())))
        self.assertTrue(away(raised(TimeoutError(), ValueError(), RuntimeError())))
        self.assertTrue(away(raised(carnot_tools.Unavailable())))
        self.assertFalse(away(raised(KeyError(), ValueError())))
        self.assertFalse(away(raised(FileNotFoundError())))


if __name__ == "__main__":
    unittest.main()
