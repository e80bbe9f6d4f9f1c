#!/usr/bin/env python3
"""Draws the training curves of runs as one SVG: success by step, a thin line per run, a thick one for their mean.

    bench/learning_curve.py --out docs/learning_curve.svg --metric env/search_qa/success runs/seeds/seed_*

Needs only Python's standard library. Curves are smoothed over --window steps.
"""
import argparse
import json

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 56, 16, 34, 44


def curve(folder, metric, window):
    with open(f"{folder}/metrics.jsonl") as lines:
        values = [json.loads(line)[metric] for line in lines]
    half = window // 2
    return [sum(values[max(0, i - half) : i + half + 1]) / len(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]


def path(values, steps, style):
    def place(i, v):
        x = LEFT + (WIDTH - LEFT - RIGHT) * i / max(1, steps - 1)
        y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - v)
        return f"{x:.1f},{y:.1f}"

    points = " ".join(place(i, v) for i, v in enumerate(values))
    return f'<polyline fill="none" {style} points="{points}"/>'


def text(x, y, words, anchor="middle", size=12):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" font-family="sans-serif" fill="#333">{words}</text>'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metric", default="env/search_qa/success")
    parser.add_argument("--out", required=True)
    parser.add_argument("--window", type=int, default=7)
    parser.add_argument("runs", nargs="+")
    arguments = parser.parse_args()
    curves = [curve(run, arguments.metric, arguments.window) for run in arguments.runs]
    steps = min(map(len, curves))
    mean = [sum(c[i] for c in curves) / len(curves) for i in range(steps)]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">', '<rect width="100%" height="100%" fill="#fff"/>']
    for tenth in range(0, 11, 2):
        y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - tenth / 10)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 8, y + 4, f"{10 * tenth} %", "end"))
    for step in range(0, steps, 20 if steps > 60 else 5):
        parts.append(text(LEFT + (WIDTH - LEFT - RIGHT) * step / max(1, steps - 1), HEIGHT - BOTTOM + 18, str(step)))
    parts.append(text(WIDTH / 2, HEIGHT - 8, "training step"))
    parts.append(text(WIDTH / 2, 20, f"{arguments.metric}, " + ("one run" if len(curves) == 1 else f"{len(curves)} seeds and their mean"), size=14))
    parts += [path(c, steps, 'stroke="#9bb8d3" stroke-width="1.2"') for c in curves]
    parts.append(path(mean, steps, 'stroke="#1f5a96" stroke-width="3"'))
    with open(arguments.out, "w") as out:
        out.write("\n".join(parts + ["</svg>"]) + "\n")


if __name__ == "__main__":
    main()
