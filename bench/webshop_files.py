#!/usr/bin/env python3
"""Writes WebShop's files for as many products as wanted, in the format of the published ones, from the 1000 products.

    bench/webshop_files.py "$CARNOT_DATA/webshop" FOLDER 1180000     # docs/data.md

FOLDER gets items_shuffle.json, one JSON array, and items_ins_v2.json. The k-th product is a copy of product k mod 1000
with a new ASIN and, in title, description and bullets, a third of the words replaced: each by a word of any product,
drawn by its frequency, one in two hundred by a word that occurs nowhere else. Prices, categories and options are kept.
One product in fifty has an instruction, that of the copied product.
"""
import argparse
import json
import lzma
import pathlib
import random

KEPT = ["name", "full_description", "pricing", "images", "product_category", "average_rating", "small_description",
        "customization_options", "asin", "category", "query", "page"]


def read_products(folder):
    with lzma.open(folder / "products.jsonl.xz", "rt", encoding="utf-8", newline="\n") as lines:
        products = [json.loads(line)["product"] for line in lines]
    return [{key: product[key] for key in KEPT if key in product} for product in products]


def texts_of(product):
    bullets = product["small_description"]
    return [product["name"], product["full_description"] or ""] + (bullets if isinstance(bullets, list) else [bullets])


def changed_text(text, words, stream, number):
    parts = text.split(" ")
    for _ in range(len(parts) // 3):
        new = stream.random() < 0.005
        parts[int(stream.random() * len(parts))] = f"x{number}q" if new else words[int(stream.random() * len(words))]
    return " ".join(parts)


def changed(product, words, stream, number):
    new = dict(product, asin=f"B{number:09d}")
    for key in ("name", "full_description"):
        new[key] = changed_text(new[key] or "", words, stream, number)
    if isinstance(new["small_description"], list):
        new["small_description"] = [changed_text(text, words, stream, number) for text in new["small_description"]]
    return new


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    products = read_products(arguments.data)
    attributes = json.loads((arguments.data / "items_ins_v2_1000.json").read_text(encoding="utf-8"))
    words = [word for product in products for text in texts_of(product) for word in text.split(" ") if word]
    stream = random.Random(1)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with (arguments.folder / "items_shuffle.json").open("w", encoding="utf-8") as items, \
            (arguments.folder / "items_ins_v2.json").open("w", encoding="utf-8") as instructions:
        for number in range(arguments.count):
            product = products[number % len(products)]
            new = changed(product, words, stream, number)
            row = attributes[product["asin"]]
            if number % 50:
                row = {"attributes": row["attributes"]}
            items.write(("[" if number == 0 else ", ") + json.dumps(new))
            instructions.write(("{" if number == 0 else ", ") + json.dumps(new["asin"]) + ": " + json.dumps(row))
        items.write("]")
        instructions.write("}")


if __name__ == "__main__":
    main()
