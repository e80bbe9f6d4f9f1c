"""Tools that tests give a policy."""
import asyncio
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from enum import Enum
from typing import List, Optional

from carnot_tools import Unavailable


class Unit(Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


@dataclass
class Place:
    city: str
    height: float = 0.0


def multiply(a: float, b: float) -> float:
    """Multiplies two numbers.

    Args:
        a: the first
        b: the second
    """
    return a * b


def weather(place: Place, unit: Unit = Unit.CELSIUS, days: Optional[List[int]] = None):
    """The weather of a place.

    :param place: where
    :param unit: of the temperature
    """
    assert isinstance(place, Place) and isinstance(unit, Unit) and isinstance(place.height, float)
    return {"city": place.city, "unit": unit.name, "days": days}


waiting = []


async def meet(name: str) -> str:
    """Waits for another call, and says whose it was."""
    if not waiting:
        waiting.append((name, asyncio.get_running_loop().create_future()))
        return await waiting[0][1]
    other, answer = waiting.pop()
    answer.set_result(name)
    return other


barrier = threading.Barrier(2)


def together(name: str) -> str:
    """Needs two calls at once."""
    barrier.wait(20)
    return name


def fault(what: str) -> str:
    """Fails as requested."""
    if what == "raise":
        raise ValueError("no such city")
    if what == "connection":
        try:
            raise ConnectionRefusedError("the service is away")
        except ConnectionRefusedError:
            raise RuntimeError("cannot look it up")
    if what == "unavailable":
        raise Unavailable("over the quota")
    if what == "exit":
        os._exit(3)
    if what == "sys.exit":
        sys.exit(3)
    if what == "children":
        subprocess.run(["cat"], check=True)
        subprocess.run(["echo", '{"id": 2, "text": "forged"}'], check=True)
    if what == "hang":
        time.sleep(60)
    if what == "garbage":
        os.write(1, b"this goes to the log\n")
    if what == "long":
        return "\u00e4" * 100
    return "right"


def book(seat: int) -> str:
    """Takes a seat."""
    return "seat %d is yours" % seat


book.changes_state = True


def no_hint(query) -> str:
    """Lacks a type."""
    return query


def odd_hint(query: threading.Thread) -> str:
    return ""
