"""The simulation of bench/scaling.py against a slow reference, and against the runs that were measured.

scaling_test.py FOLDER: the one that holds scaling.py.
"""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1])))
import scaling_check  # noqa: E402
import scaling_step  # noqa: E402


def token_by_token(device, episodes):
    """roll_out(), one step of the batch at a time."""
    a = device.assumed
    grows = 1 + a.tool_tokens / a.tool_every
    room = device.room(a.sampled * 1.4)
    clock = computed = 0.0
    queue = list(range(len(episodes)))[::-1]
    running, waiting = {}, {}  # episode: [piece, tokens left]; episode: (end of the tool's call, next piece)
    held = [0.0] * len(episodes)
    while queue or running or waiting:
        for one, (time, piece) in list(waiting.items()):
            if time <= clock:
                del waiting[one]
                running[one] = [piece, episodes[one][piece][0]]
        while queue and len(running) + len(waiting) < room:
            one = queue.pop()
            running[one] = [0, episodes[one][0][0]]
        if not running:
            clock = min(time for time, _ in waiting.values())
            continue
        step = device.decode_step(len(running), sum(held[one] for one in running))
        clock, computed = clock + step, computed + step
        for one in list(running):
            held[one] += grows
            running[one][1] -= 1
            if running[one][1] == 0:
                piece = running.pop(one)[0]
                if piece + 1 < len(episodes[one]):
                    waiting[one] = (clock + episodes[one][piece][1], piece + 1)
    return clock, computed


def check_rollouts():
    worst = 0.0
    for model in scaling_step.MODELS[:2]:
        for count, room in ((1, 1), (3, 8), (8, 8), (40, 6), (40, 100)):
            memory = (6 * model.parameters + model.cache_bytes * 420 * (room + 0.5)) / 0.9
            a = scaling_step.Assumed(sampled=300, tool_every=60, tool_wait=0.05, memory=memory)
            draw = random.Random(count)
            episodes = [scaling_step.episode(draw, a) for _ in range(count)]
            device = scaling_step.Device(model, a)
            assert device.room(420) == room, device.room(420)
            for fast, slow in zip(scaling_step.roll_out(device, episodes), token_by_token(device, episodes)):
                worst = max(worst, abs(fast / slow - 1))
    print(f"rollouts from event to event, against token by token: {worst:.1%} apart at most")
    assert worst < 0.02


def check_shares():
    draw = random.Random(5)
    for _ in range(50):
        count, parts = draw.randrange(1, 200), draw.randrange(1, 40)
        shares = [scaling_step.even_share(count, part, parts) for part in range(parts)]
        assert [i for share in shares for i in share] == list(range(count))
        sizes = [draw.random() for _ in range(count)]
        fullest = scaling_step.largest_share(sizes, parts)
        least = max(max(sizes), sum(sizes) / parts)
        assert least - 1e-9 <= fullest <= sum(sizes) / parts + max(sizes) + 1e-9
        alone = scaling_check.queue_of_workers(sizes, 1, 2)
        assert abs(alone - sum(sizes)) < 1e-9
        assert abs(scaling_check.queue_of_workers(sizes, 2 * parts, parts) - sum(sizes) / parts) <= 2 * max(sizes)


check_rollouts()
check_shares()
worst = scaling_check.check(scaling_step.Costs())
assert worst < scaling_check.ALLOWED_ERROR, worst
