// worlds/webshop/products.h -- WebShop's products from the published files.
//
//   items_shuffle.json, items_shuffle_1000.json    [{"asin", "name", "category", "query", "product_category",
//                                                    "full_description", "small_description", "pricing",
//                                                    "customization_options", ...}, ...]
//   products.jsonl                                  the same records, one per line, each alone or as {"product": {...}}
//   items_ins_v2.json, items_ins_v2_1000.json       {ASIN: {"attributes", "instruction", "instruction_attributes"}}
//   items_human_ins.json, human_instructions.json   {ASIN: [{"instruction", "instruction_attributes",
//                                                            "instruction_options"}, ...]}
//
// Each may end in .xz. Files of any size are read record by record; a record that is wrong is named by its number.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct ShopOption {
  std::string name{};  ///< "color"
  std::vector<std::string> values{};
};

/// What a person asked for, looking at the product.
struct HumanInstruction {
  std::string text{};
  std::vector<std::string> attributes{};
  std::vector<std::string> options{};  ///< values, without their names
};

struct ShopProduct {
  std::string asin{};
  std::string category{};          ///< "garden"
  std::string query{};             ///< that the product was collected with: "console tables"
  std::string product_category{};  ///< "Home & Kitchen › Furniture › ..."
  std::string title{};
  std::string description{};
  std::vector<std::string> bullets{};
  std::vector<double> pricing{100.0};  ///< one price, or the ends of a range
  std::vector<ShopOption> options{};   ///< in the file's order; lower case, `/` written ` | `
  std::vector<std::string> attributes{"DUMMY_ATTR"};
  std::string instruction{};  ///< "Find me ..."; empty: no synthetic goal
  std::vector<std::string> instruction_attributes{};
  std::vector<HumanInstruction> human_instructions{};

  std::string price_text() const;  ///< "$3.5", "$3.5 to $10.0"
  /// What the search engine indexes: title, description, first bullet and options, in lower case.
  std::string indexed_text() const;
};

struct ShopFiles {
  std::filesystem::path products{};
  std::filesystem::path attributes{};
  std::filesystem::path human{};  ///< empty: none
};

/// The files of `folder` under their published names; of several, all products rather than 1000. The names that
/// `chosen` has are kept. The error lists what is missing, and what was looked for.
Result<ShopFiles> find_shop_files(const std::filesystem::path& folder, const ShopFiles& chosen);

/// Products in the file's order, with attributes and instructions; those that WebShop passes over left out: a name
/// "nan" or of more than ten characters, and repeated ones. `most` > 0: of the first `most` records.
Result<std::vector<ShopProduct>> read_shop_products(const ShopFiles& files, std::size_t most);

// The same from streams; `name` is for messages.
Result<std::vector<ShopProduct>> parse_shop_products(std::istream& in, const std::string& name, std::size_t most);
Status add_shop_attributes(std::istream& in, const std::string& name, std::vector<ShopProduct>& products);
Status add_human_instructions(std::istream& in, const std::string& name, std::vector<ShopProduct>& products);

/// The prices in "$3.50", "$3.50 - $1,010.00": what follows each `$`, two at most. Empty if there is none.
std::vector<double> parse_shop_prices(std::string_view text);

}  // namespace carnot
