#!/usr/bin/env python3
"""ALFWorld and BM25 compared with the usual programs for them: the same games, the same passages and queries.

    python3 -m venv peers && peers/bin/pip install -r bench/peers/worlds_requirements.txt
    cmake --build build --target alfworld_bench bm25_bench carnot
    peers/bin/python bench/peers/worlds_speed.py alfworld "$CARNOT_DATA/alfworld"     # docs/data.md
    build/bm25_bench FOLDER 200000
    peers/bin/python bench/peers/worlds_speed.py bm25 FOLDER/passages_200000_100.jsonl --anserini JAR

alfworld: games of valid_seen, written as alfworld-download brings them, played with 50 random admissible commands each,
by ALFWorld itself (one process, no batches; after each command the answer and the admissible commands) and by
alfworld_bench. Processor time, without loading the games.

bm25: queries of eight words in a row of one passage; the three best passages. Carnot's program and Anserini (Lucene)
run N and 2 N queries, and the difference counts, which excludes the start; bm25s and rank_bm25 are called in this
process. Processor time of all threads. JAR is Anserini's, which the package pyserini==0.22.1 carries (pip download
--no-deps, unzip); it needs Java 11 or later.
"""
import argparse
import json
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = 50


# ---- ALFWorld

def play_original(path, seed):
    """Seconds of the processor to open a game, and to play; commands that were played."""
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    begin = time.process_time()
    infos = textworld.EnvInfos(won=True, admissible_commands=True)
    env = textworld.start(str(path), infos, wrappers=[AlfredDemangler(shuffle=False)])
    state = env.reset()
    opened = time.process_time() - begin
    stream, steps = random.Random(seed), 0
    begin = time.process_time()
    while steps < COMMANDS and not state.won:
        state, _, _ = env.step(stream.choice(state.admissible_commands))
        steps += 1
    played = time.process_time() - begin
    env.close()
    return opened, played, steps


def compare_alfworld(arguments):
    sys.path.insert(0, str(ROOT / "tools" / "golden"))
    import alfworld_plays
    rows = alfworld_plays.read_rows(arguments.data, "valid_seen")
    rows = rows[:: max(1, len(rows) // arguments.games)][: arguments.games]
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for row in rows:
            trial = pathlib.Path(folder) / "valid_seen" / row["task_id"] / row["trial_id"]
            trial.mkdir(parents=True)
            paths.append(trial / "game.tw-pddl")
            alfworld_plays.write_game(arguments.data, row, paths[-1])
        plays = [play_original(path, seed) for seed, path in enumerate(paths)]
        bench = subprocess.run([arguments.build / "alfworld_bench", folder], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
    opened, played, steps = (sum(column) for column in zip(*plays))
    print(bench)
    print(f"ALFWorld: {len(plays)} games, {steps} steps: {steps / played:.1f} steps per second of processor time,"
          f" {opened / len(plays):.2f} s to open a game")


# ---- BM25

def read_queries(file, count):
    """`count` queries of eight words in a row of a passage."""
    stream, texts = random.Random(7), []
    size = file.stat().st_size
    with file.open("rb") as lines:
        while len(texts) < count:
            lines.seek(stream.randrange(size - 10000))
            lines.readline()
            words = json.loads(lines.readline())["contents"].split("\n", 1)[1].split()
            at = stream.randrange(len(words) - 8)
            texts.append(" ".join(words[at:at + 8]))
    return texts


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_timed(command, text=None):
    """Seconds of the processor and of the clock, and what the program printed."""
    begin, clock = children_seconds(), time.perf_counter()
    done = subprocess.run(command, input=text, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return children_seconds() - begin, time.perf_counter() - clock, done.stdout


def ask_carnot(program, file, queries):
    asked = "".join(json.dumps({"query": query, "topk": 3}) + "\n" for query in queries)
    seconds, _, out = run_timed([program, "tool", "bm25", file, "--json"], asked)
    hits = [[hit["document"]["id"] for hit in json.loads(line)["result"]] for line in out.splitlines()]
    return seconds, hits


def index_anserini(jar, file, index):
    """Anserini needs the file to be alone in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / file.name).symlink_to(file.resolve())
        return run_timed(["java", "-cp", jar, "io.anserini.index.IndexCollection", "-collection", "JsonCollection",
                          "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", "-input", folder,
                          "-index", index, "-optimize"])[0]


def ask_anserini(jar, index, queries):
    with tempfile.TemporaryDirectory() as folder:
        topics, found = pathlib.Path(folder) / "topics.tsv", pathlib.Path(folder) / "found.txt"
        topics.write_text("".join(f"{i}\t{query}\n" for i, query in enumerate(queries)))
        seconds, _, _ = run_timed(["java", "-cp", jar, "io.anserini.search.SearchCollection", "-index", index,
                                   "-topics", topics, "-topicreader", "TsvInt", "-output", found, "-bm25",
                                   "-bm25.k1", "0.9", "-bm25.b", "0.4", "-hits", "3", "-threads", "1"])
        hits = [[] for _ in queries]
        for line in found.read_text().splitlines():
            topic, _, passage = line.split()[:3]
            hits[int(topic)].append(passage)
    return seconds, hits


def marginal(ask, queries):
    """Seconds that each query of the second half takes, and the hits of all."""
    half = ask(queries[: len(queries) // 2])[0]
    whole, hits = ask(queries)
    return (whole - half) / (len(queries) - len(queries) // 2), hits


def texts_of(file):
    with file.open() as lines:
        return [json.loads(line)["contents"] for line in lines]


def ask_bm25s(file, queries):
    import bm25s
    texts = texts_of(file)
    begin = time.process_time()
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    built, begin, hits = time.process_time() - begin, time.process_time(), []
    for query in queries:
        found, _ = index.retrieve(bm25s.tokenize(query, stopwords="en", show_progress=False), k=3, show_progress=False)
        hits.append([str(number) for number in found[0]])
    return built, (time.process_time() - begin) / len(queries), hits


def ask_rank_bm25(file, queries):
    import rank_bm25
    texts = [text.lower().split() for text in texts_of(file)]
    begin = time.process_time()
    index = rank_bm25.BM25Okapi(texts, k1=0.9, b=0.4)
    built, begin, hits = time.process_time() - begin, time.process_time(), []
    for query in queries[:20]:
        scores = index.get_scores(query.lower().split())
        hits.append([str(number) for number in scores.argsort()[::-1][:3]])
    return built, (time.process_time() - begin) / len(hits), hits


def print_row(name, built, each, hits, ours):
    same = sum(one[:1] == other[:1] for one, other in zip(hits, ours)) / len(hits)
    print(f"| {name} | {built} | {1e3 * each:.2f} ms | {100 * same:.0f} % |", flush=True)


def compare_bm25(arguments):
    file = arguments.data
    queries = read_queries(file, arguments.queries)
    print("| program | index built in | a query | same best passage |\n|---|---:|---:|---:|")
    each, ours = marginal(lambda part: ask_carnot(arguments.build / "carnot", file, part), queries)
    print_row("Carnot", "see bm25_bench", each, ours, ours)
    if arguments.anserini:
        index = file.with_suffix(".lucene")
        built = "before" if index.exists() else f"{index_anserini(arguments.anserini, file, index):.0f} s"
        each, hits = marginal(lambda part: ask_anserini(arguments.anserini, index, part), queries)
        print_row("Anserini 0.22.1 (Lucene)", built, each, hits, ours)
    for name, ask in (("bm25s", ask_bm25s), ("rank_bm25", ask_rank_bm25)):
        if name in arguments.without:
            continue
        built, each, hits = ask(file, queries)
        print_row(name, f"{built:.0f} s", each, hits, ours)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", choices=["alfworld", "bm25"])
    parser.add_argument("data", type=pathlib.Path, help="the folder of games, or the file of passages")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--games", type=int, default=10)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--anserini", metavar="JAR", help="Anserini's jar")
    parser.add_argument("--without", nargs="*", default=[], help="packages to leave out: bm25s, rank_bm25")
    arguments = parser.parse_args()
    (compare_alfworld if arguments.world == "alfworld" else compare_bm25)(arguments)


if __name__ == "__main__":
    main()
