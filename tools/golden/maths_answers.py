#!/usr/bin/env python3
"""Records which responses math-verify accepts for the gold answer, for tests/golden/maths_answers.jsonl.

Run from the repository root with:  pip install math-verify==0.9.0 latex2sympy2_extended==1.11.0 antlr4-python3-runtime==4.13.2
    python3 tools/golden/maths_answers.py

Left out are pairs that need computer algebra, and those of docs/differences_to_published_code.md.
"""

import json
import pathlib
import random

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

PAIRS = [
    ("18", r"\boxed{18}"), ("18", r"\boxed{18.0}"), ("18", r"\boxed{$18}"), ("18", r"\boxed{\$18}"),
    ("18", r"\boxed{18\text{ dollars}}"), ("18", r"\boxed{19}"), ("18", r"\boxed{-18}"), ("18", r"\boxed{1.8}"),
    ("18", "The answer is 18."), ("18", "She makes $18 every day."), ("18", "It was 18, now it is 19."),
    ("1234", r"\boxed{1,234}"), ("1234", "The total is 1,234 hens."), ("1234", r"\boxed{1234.00}"),
    ("1234", r"\boxed{12,34}"), ("-5", "It is -5 degrees."), ("-5", r"\boxed{-5}"), ("-5", r"\boxed{5}"),
    ("2.5", r"\boxed{\frac{5}{2}}"), ("2.5", r"\boxed{5/2}"), ("2.5", r"\boxed{2\frac{1}{2}}"), ("2.5", "That is 5/2 metres."),
    ("0.5", r"\boxed{\frac{1}{2}}"), ("0.5", r"\boxed{\dfrac12}"), ("0.5", r"\boxed{.5}"), ("0.5", r"\boxed{0.50}"),
    (r"\frac{1}{3}", r"\boxed{0.333333}"), (r"\frac{1}{3}", r"\boxed{0.33}"), (r"\frac{1}{3}", r"\boxed{\frac{2}{6}}"),
    (r"\frac{3}{4}", "It is 3/4 of the cake."), (r"\frac{3}{4}", r"so $\frac{3}{4}$ of it"), ("50", r"\boxed{50\%}"),
    ("0", r"\boxed{0}"), ("0", r"\boxed{-0}"), ("0", r"\boxed{0.000}"), ("7", r"\boxed{x = 7}"), ("7", r"so \(x = 7\)."),
    ("1000", r"\boxed{10^3}"), ("1500", r"\boxed{1.5 \times 10^3}"), ("6", r"\boxed{2 \cdot 3}"), ("5", r"\boxed{10 - 5}"),
    (r"2\sqrt{3}", r"\boxed{\sqrt{12}}"), (r"2\sqrt{3}", r"\boxed{3\sqrt{2}}"), (r"\sqrt{2}", r"\boxed{\sqrt2}"),
    (r"2\pi", r"\boxed{2\pi}"), (r"2\pi", r"\boxed{6.283185}"), (r"2\pi", r"\boxed{3\pi}"),
    ("(1,2)", r"\boxed{(1, 2)}"), ("(1,2)", r"\boxed{(2, 1)}"), (r"(1,\frac{1}{2})", r"\boxed{(1, 0.5)}"),
    (r"\{1,2\}", r"\boxed{\{2,1\}}"), (r"\{1,2\}", r"\boxed{\{1,3\}}"), (r"\{1,2\}", r"\boxed{\left\{1, 2\right\}}"),
    ("90", r"\boxed{90^\circ}"), ("90", r"\boxed{90^{\circ}}"), ("12", r"\boxed{12\text{ cm}^2}"), ("12", r"\boxed{12 \mathrm{cm}}"),
    ("1000000", r"\boxed{1000001}"), ("1000000", r"\boxed{1,000,000}"), ("3", r"\boxed{\frac{6}{2}}"), ("3", r"\boxed{\sqrt{9}}"),
    ("2", r"\boxed{2} and then 3"), (r"\frac{1}{2}", r"\boxed{\frac{1}{2}}"),
    ("x", r"\boxed{x}"), ("x", r"\boxed{y}"),
]


def drawn(generator):
    """Integers and fractions as in GSM8K's answers and models' responses, half of them correct."""
    over, under = generator.randint(-3000, 3000), generator.choice([1, 1, 1, 2, 3, 4, 5, 8])
    off = generator.choice([0, 0, 0, 1, -1, 10])
    told = over + off * under
    gold = str(over) if under == 1 else rf"\frac{{{over}}}{{{under}}}"
    forms = [rf"\boxed{{\frac{{{told}}}{{{under}}}}}", rf"\boxed{{{told}/{under}}}", rf"It is \(\frac{{{told}}}{{{under}}}\)."]
    if under == 1:
        forms = [rf"\boxed{{{told}}}", rf"\boxed{{{told:,}}}", f"The answer is {told}.", rf"\boxed{{{told}.00}}",
                 f"It comes to {told:,} in all.", rf"\boxed{{\${told}}}", rf"\boxed{{{told}\text{{ apples}}}}",
                 rf"That makes $x = {told}$, so \boxed{{x = {told}}}"]
    elif under in (2, 4, 5, 8):
        forms.append(rf"\boxed{{{told / under}}}")
    return gold, generator.choice(forms)


def verdict(gold, response):
    wanted = parse(f"${gold}$", extraction_config=[LatexExtractionConfig()], parsing_timeout=None)
    found = parse(response, extraction_config=[LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig()],
                  parsing_timeout=None)
    return verify(wanted, found, float_rounding=6, timeout_seconds=None)


def main():
    generator = random.Random(3)
    pairs = PAIRS + [drawn(generator) for _ in range(240)]
    lines = [json.dumps({"gold": gold, "response": response, "equal": verdict(gold, response)}) for gold, response in pairs]
    pathlib.Path("tests/golden/maths_answers.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
