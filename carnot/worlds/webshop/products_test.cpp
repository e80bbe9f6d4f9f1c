#include "carnot/worlds/webshop/products.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/worlds/webshop/json_parts.h"
#include "testing/shops.h"

namespace carnot {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::vector<std::string> parts_of(const std::string& text, std::string* problem = nullptr) {
  std::istringstream in(text);
  std::vector<std::string> parts;
  const Status status = for_each_json_part(in, "file", [&](std::string_view part) -> Status {
    parts.emplace_back(part);
    return Done{};
  });
  if (problem != nullptr) *problem = status.ok() ? "" : status.error().message;
  return parts;
}

TEST(JsonParts, AreTheElementsOfAnArrayAsTheyStand) {
  EXPECT_EQ(parts_of(" [1, {\"a\": [2, \"]},\\\"\"]} ,\"x\"]\n"),
            (std::vector<std::string>{"1", "{\"a\": [2, \"]},\\\"\"]} ", "\"x\""}));
  EXPECT_TRUE(parts_of("[ ]").empty());
}

TEST(JsonParts, AreTheMembersOfAnObjectEachInAnObjectOfItsOwn) {
  EXPECT_EQ(parts_of("{\"a\": {\"b\": 1}, \"c\": [2, 3]}"),
            (std::vector<std::string>{"{\"a\": {\"b\": 1}}", "{\"c\": [2, 3]}"}));
}

TEST(JsonParts, SayWhatIsWrongWithTheWhole) {
  std::string problem;
  for (const auto& [text, expected] :
       std::map<std::string, std::string>{{"", "file: expected a JSON array or object, found nothing"},
                                          {"7", "file: expected a JSON array or object"},
                                          {"[1", "file: ends before the closing bracket"},
                                          {"[1}", "file: the closing bracket is of the other kind"},
                                          {"[1] 2", "file: text behind the closing bracket"}}) {
    parts_of(text, &problem);
    EXPECT_EQ(problem, expected);
  }
  EXPECT_EQ(parts_of("[1,]"), (std::vector<std::string>{"1", ""})) << "no JSON, as its reader will find";
}

TEST(ShopPrices, AreWhatFollowsTheDollarSigns) {
  EXPECT_EQ(parse_shop_prices("$3.50"), std::vector<double>{3.5});
  EXPECT_EQ(parse_shop_prices("$3.50 - $1,010.00"), (std::vector<double>{3.5, 1010}));
  EXPECT_EQ(parse_shop_prices("$1$2$3"), (std::vector<double>{1, 2}));
  EXPECT_TRUE(parse_shop_prices("").empty());
  EXPECT_TRUE(parse_shop_prices("7.5").empty());
}

std::vector<std::string> texts_of(const OrderedJson& list) { return list.get<std::vector<std::string>>(); }

class ShopRecords : public testing::EveryShop {
 protected:
  /// What WebShop made of the records (tools/golden/webshop.py), with the records themselves.
  static std::string rows() {
    return published() ? published_path("webshop/products.jsonl.xz") : recorded_path("webshop/products.jsonl.xz");
  }
};
INSTANTIATE_TEST_SUITE_P(Data, ShopRecords, ::testing::Bool(), testing::data_name);

void expect_read_as_webshop_reads(const std::vector<ShopProduct>& products, const std::string& rows) {
  const auto text = read_maybe_compressed(rows);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto lines = split_lines(*text);
  ASSERT_EQ(products.size(), lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const OrderedJson row = OrderedJson::parse(lines[i]), made = row.at("product");
    const ShopProduct& product = products[i];
    EXPECT_EQ(product.asin, row.at("id"));
    EXPECT_EQ(product.indexed_text(), row.at("contents")) << product.asin;
    EXPECT_EQ(product.title, made.at("Title"));
    EXPECT_EQ(product.description, made.at("Description"));
    EXPECT_EQ(product.bullets, texts_of(made.at("BulletPoints")));
    EXPECT_EQ(product.price_text(), made.at("Price"));
    EXPECT_EQ(product.pricing, made.at("pricing").get<std::vector<double>>());
    EXPECT_EQ(product.attributes, texts_of(made.at("Attributes")));
    EXPECT_EQ(product.category, made.at("category"));
    EXPECT_EQ(product.query, made.at("query"));
    ASSERT_EQ(product.options.size(), made.at("options").size()) << product.asin;
    std::size_t option = 0;
    for (const auto& [name, values] : made.at("options").items()) {
      EXPECT_EQ(product.options[option].name, name);
      EXPECT_EQ(product.options[option++].values, texts_of(values));
    }
  }
}

TEST_P(ShopRecords, AreReadAsWebShopReadsThem) {
  // The files of the folder, and the rows: they are one of the formats.
  for (const ShopFiles& chosen : {ShopFiles{}, ShopFiles{.products = rows()}}) {
    const auto files = find_shop_files(folder(), chosen);
    ASSERT_TRUE(files.ok()) << files.error().message;
    const auto products = read_shop_products(*files, 0);
    ASSERT_TRUE(products.ok()) << products.error().message;
    expect_read_as_webshop_reads(*products, rows());
  }
}

TEST_P(ShopRecords, AreInFilesOfThePublishedNames) {
  const auto found = find_shop_files(folder(), {});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->products.filename(), published() ? "products.jsonl.xz" : "items_shuffle_1000.json");
  EXPECT_EQ(found->human.filename(), published() ? "human_instructions.json" : "items_human_ins.json");
}

constexpr const char* kRaw = R"([
 {"asin": "B1", "name": "Red Cup", "category": "garden", "query": " Cups ", "product_category": "A › B",
  "full_description": null, "small_description": "one", "pricing": "$3.50 - $1,010.00",
  "customization_options": {"Size": [{"value": " S/M "}, {"value": "L"}], "Color": null, "SIZE": [{"value": "XL"}]}},
 {"asin": "nan", "name": "", "category": "", "query": "", "product_category": ""},
 {"asin": "B1234567890", "name": "", "category": "", "query": "", "product_category": ""},
 {"asin": "B1", "name": "again", "category": "", "query": "", "product_category": ""},
 {"asin": "B2", "name": "Bowl", "category": "garden", "query": "bowls", "product_category": "", "pricing": "",
  "customization_options": ""}])";

TEST(ShopProducts, OfTheRawFilesAreCleanedAndCountedOnce) {
  std::istringstream in(kRaw);
  auto products = parse_shop_products(in, "items_shuffle.json", 0);
  ASSERT_TRUE(products.ok()) << products.error().message;
  ASSERT_EQ(products->size(), 2u);
  const ShopProduct& cup = products->at(0);
  EXPECT_EQ(cup.query, "cups");
  EXPECT_EQ(cup.bullets, std::vector<std::string>{"one"});
  EXPECT_EQ(cup.price_text(), "$3.5 to $1010.0");
  ASSERT_EQ(cup.options.size(), 1u) << "names are equal in lower case: the later one counts";
  EXPECT_EQ(cup.options[0].values, std::vector<std::string>{"xl"});
  EXPECT_EQ(products->at(1).price_text(), "$100.0");
  EXPECT_EQ(cup.indexed_text(), "red cup  one size: xl");

  std::istringstream attributes(R"({"B2": {"attributes": []}, "B9": 7,
    "B1": {"attributes": ["a"], "instruction": "Find me", "instruction_attributes": ["a"]}})");
  ASSERT_TRUE(add_shop_attributes(attributes, "ins", *products).ok());
  EXPECT_EQ(products->at(0).instruction, "Find me");
  EXPECT_TRUE(products->at(1).attributes.empty());
}

TEST(ShopProducts, AreTheFirstOnesWhereFewerAreWanted) {
  std::istringstream in(kRaw);
  EXPECT_EQ(parse_shop_products(in, "items", 4).value().size(), 1u);
}

TEST(ShopProducts, SayWhichRecordsAreWrong) {
  const auto problem = [](const std::string& text) {
    std::istringstream in(text);
    const auto products = parse_shop_products(in, "f", 0);
    return products.ok() ? "" : products.error().message;
  };
  EXPECT_EQ(problem("[]"), "f: holds no product");
  const std::string lines =
      problem(R"({"asin": "B1", "name": 3, "category": "c", "query": "q", "product_category": "p"})"
              "\n{");
  EXPECT_TRUE(lines.starts_with("f: product 1: name: expected a string, found 3\nf: product 2: not JSON at byte 2: "))
      << lines;
  EXPECT_EQ(
      problem(R"([{"asin": "B1", "name": "n", "category": "c", "query": "q", "product_category": "p",
                         "pricing": 7, "customization_options": {"size": [{"value": 1}]}}])"),
      "f: product 1: pricing: expected prices such as \"$3.50\", found 7\n"
      "f: product 1: customization_options.size: expected objects with a text `value`, found an object of size 1");
}

TEST(ShopProducts, NeedAttributesForEveryInstruction) {
  std::vector<ShopProduct> products(1);
  products[0].asin = "B1";
  std::istringstream in(R"({"B1": {"instruction": "Find me"}})");
  const Status status = add_shop_attributes(in, "ins", products);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "ins: B1: instruction_attributes: expected at least one text, found none");
}

TEST(ShopFiles, ThatAreMissingAreNamed) {
  const auto missing = find_shop_files("/nowhere", {});
  ASSERT_FALSE(missing.ok());
  EXPECT_TRUE(missing.error().message.starts_with(
      "/nowhere: holds no file of products; expected one of items_shuffle.json, items_shuffle.json.xz, products.jsonl"))
      << missing.error().message;
}

}  // namespace
}  // namespace carnot
