"""Rows of Markdown tables, as bench/scaling.py prints them."""


def number(x):
    if x == 0:
        return "0"
    return f"{x:,.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def header(*cells):
    row(*cells)
    row(*["---"] * len(cells))
