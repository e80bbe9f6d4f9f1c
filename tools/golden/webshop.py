#!/usr/bin/env python3
"""Records what WebShop and Lucene make of the invented products in tests/tasks/large_shop, for tests/recorded/webshop.

Run from the repository root with a JDK 17, a checkout of princeton-nlp/WebShop (64fa2a5), and:
    pip install pyjnius==1.6.1 tqdm==4.70.1 && pip install --no-deps pyserini==0.22.1
    python3 tools/golden/webshop.py WEBSHOP

products.jsonl.xz: WebShop's own record of each product, and the text that it indexes (search_engine/
convert_product_file_format.py). index.json: the totals of Lucene's index of these texts, built as WebShop builds it
(Lucene 9.5 in Anserini 0.22.1, its English analyzer), the length that it stores for each product, and the products that
searches find, in WebShop's order, with Lucene's scores (BM25, k1 0.9, b 0.4): Anserini's are rounded.
"""
import argparse
import builtins
import json
import lzma
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import types

import pyserini

SHOP = pathlib.Path("tests/tasks/large_shop").resolve()
TARGET = pathlib.Path("tests/recorded/webshop").resolve()
JAR = str(next((pathlib.Path(pyserini.__path__[0]) / "resources/jars").glob("anserini-*-fatjar.jar")))
SEARCHES = ["machine wash women's hooded sweatshirt with long sleeve", "walrus choirs", "the women of the valleys",
            "solid wood console tables, assembly required", "hand knitted wool sweaters from Shetland",
            "35/38 socks for men and women"]


def stub(name, **members):
    """Stubs for the web site's packages, which WebShop imports but this script does not need."""
    sys.modules[name] = types.ModuleType(name)
    for member, value in members.items():
        setattr(sys.modules[name], member, value)


def documents(webshop, scratch):
    """The rows that WebShop writes for its search engine, of the products in SHOP."""
    stub("flask", render_template_string=None)
    stub("rich", print=builtins.print)
    stub("pyserini.search")
    stub("pyserini.search.lucene", LuceneSearcher=None)
    sys.path.insert(0, str(webshop))
    import web_agent_site.utils as paths
    paths.DEFAULT_FILE_PATH = str(SHOP / "items_shuffle_1000.json")
    paths.DEFAULT_ATTR_PATH = str(SHOP / "items_ins_v2_1000.json")
    paths.HUMAN_ATTR_PATH = str(SHOP / "items_human_ins.json")
    paths.DEFAULT_REVIEW_PATH = str(scratch / "reviews.json")
    paths.DEFAULT_ALL_PRODS_PATH = str(scratch / "none.json")
    pathlib.Path(paths.DEFAULT_REVIEW_PATH).write_text("[]")
    for folder in ["resources", "resources_100", "resources_1k", "resources_100k"]:
        (scratch / folder).mkdir()
    os.chdir(scratch)
    runpy.run_path(str(webshop / "search_engine/convert_product_file_format.py"))
    return (scratch / "resources_1k/documents.jsonl").read_text()


def hits_of(folder, reader, query):
    from jnius import autoclass
    site = autoclass("io.anserini.search.SimpleSearcher")(folder)
    site.set_bm25(0.9, 0.4)
    lucene = autoclass("org.apache.lucene.search.IndexSearcher")(reader)
    lucene.setSimilarity(autoclass("org.apache.lucene.search.similarities.BM25Similarity")(0.9, 0.4))
    words = autoclass("io.anserini.search.query.BagOfWordsQueryGenerator")().buildQuery(
        "contents", autoclass("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance(), query)
    found = lucene.search(words, reader.maxDoc()).scoreDocs
    scores = {lucene.doc(hit.doc).get("id"): hit.score for hit in found}
    return [[hit.docid, scores[hit.docid]] for hit in site.search(query, 50)]


def index_of(scratch):
    """Lucene's index of the documents, as search_engine/run_indexing.sh builds it."""
    folder = str(scratch / "index")
    subprocess.run(["java", "-cp", JAR, "io.anserini.index.IndexCollection", "-collection", "JsonCollection", "-input",
                    str(scratch / "resources_1k"), "-index", folder, "-generator", "DefaultLuceneDocumentGenerator",
                    "-threads", "1", "-storePositions", "-storeDocvectors", "-storeRaw"], check=True)
    import jnius_config
    jnius_config.set_classpath(JAR)
    from jnius import autoclass
    reader = autoclass("io.anserini.index.IndexReaderUtils").getReader(folder)
    read_length = autoclass("org.apache.lucene.util.SmallFloat").byte4ToInt
    leaf = reader.leaves().get(0).reader()
    norms, lengths = leaf.getNormValues("contents"), []
    for number in range(reader.maxDoc()):
        assert norms.advanceExact(number)
        lengths.append([leaf.document(number).get("id"), read_length(norms.longValue())])
    searches = [{"query": query, "hits": hits_of(folder, reader, query)} for query in SEARCHES]
    return {"doc_count": reader.getDocCount("contents"), "sum_total_term_freq": reader.getSumTotalTermFreq("contents"),
            "sum_doc_freq": reader.getSumDocFreq("contents"), "num_terms": leaf.terms("contents").size(),
            "lengths": lengths, "searches": searches}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("webshop", type=pathlib.Path)
    webshop = parser.parse_args().webshop.resolve()
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        rows = documents(webshop, pathlib.Path(scratch))
        index = index_of(pathlib.Path(scratch))
        (TARGET / "products.jsonl.xz").write_bytes(lzma.compress(rows.encode(), preset=9))
        lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in index.items())
        (TARGET / "index.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
