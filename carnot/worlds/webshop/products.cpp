#include "carnot/worlds/webshop/products.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/env/game.h"
#include "carnot/worlds/python/python_text.h"
#include "carnot/worlds/webshop/json_parts.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ShopJson = nlohmann::ordered_json;

/// One record's members, read with the problems found on the way.
class ShopRecord {
 public:
  ShopRecord(const ShopJson& record, std::string where) : record_(record), where_(std::move(where)) {}

  /// The member, or null if it is absent or null.
  const ShopJson* member(const char* key) const {
    const auto at = record_.find(key);
    return at == record_.end() || at->is_null() ? nullptr : &*at;
  }

  std::string text(const char* key) {
    const ShopJson* value = member(key);
    if (value == nullptr || !value->is_string()) {
      problem(key, "a string", value);
      return {};
    }
    return value->get<std::string>();
  }
  std::string text_or_empty(const char* key) { return member(key) == nullptr ? std::string() : text(key); }

  std::vector<std::string> texts_or_empty(const char* key) {
    const ShopJson* value = member(key);
    std::vector<std::string> texts;
    if (value == nullptr) return texts;
    const bool all = value->is_array() && std::ranges::all_of(*value, [](const auto& v) { return v.is_string(); });
    if (!all) problem(key, "a list of strings", value);
    if (all)
      for (const ShopJson& element : *value) texts.push_back(element.get<std::string>());
    return texts;
  }

  void problem(const std::string& key, const std::string& expected, const ShopJson* found) {
    problems_.push_back(where_ + ": " + key + ": expected " + expected + ", found " +
                        (found == nullptr ? "none" : shown(nlohmann::json(*found))));
  }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  const ShopJson& record_;
  std::string where_;
  std::vector<std::string> problems_{};
};

std::string option_value(std::string_view text) {
  std::string value;
  for (const char c : stripped(text)) {
    if (c == '/') {
      value += " | ";
    } else {
      value += c;
    }
  }
  return python_lower(value);
}

std::vector<ShopOption> read_options(ShopRecord& record) {
  constexpr const char* kKey = "customization_options";
  std::vector<ShopOption> options;
  const ShopJson* all = record.member(kKey);
  if (all == nullptr || all->empty() || (all->is_string() && all->get_ref<const std::string&>().empty()))
    return options;
  if (!all->is_object()) {
    record.problem(kKey, "an object", all);
    return options;
  }
  for (const auto& [name, contents] : all->items()) {
    if (contents.is_null()) continue;
    ShopOption option{.name = python_lower(name)};
    if (!contents.is_array()) record.problem(std::string(kKey) + "." + name, "a list", &contents);
    for (const ShopJson& content : contents) {
      const auto value = content.is_object() ? content.find("value") : content.end();
      if (!content.is_object() || value == content.end() || !value->is_string()) {
        record.problem(std::string(kKey) + "." + name, "objects with a text `value`", &content);
        break;
      }
      option.values.push_back(option_value(value->get_ref<const std::string&>()));
    }
    const auto same = std::ranges::find(options, option.name, &ShopOption::name);
    if (same == options.end()) {
      options.push_back(std::move(option));
    } else {
      *same = std::move(option);
    }
  }
  return options;
}

std::vector<double> read_pricing(ShopRecord& record) {
  const ShopJson* value = record.member("pricing");
  std::vector<double> prices;
  if (value != nullptr && value->is_string()) prices = parse_shop_prices(value->get_ref<const std::string&>());
  if (value != nullptr && value->is_array())
    for (const ShopJson& price : *value)
      if (price.is_number() && prices.size() < 2) prices.push_back(price.get<double>());
  const bool usable = value == nullptr || value->empty() || value->is_array() || value->is_string();
  const bool sound = std::ranges::all_of(prices, [](double p) { return std::isfinite(p) && p >= 0 && p < 1e9; });
  if (!usable || !sound) record.problem("pricing", "prices such as \"$3.50\"", value);
  return prices.empty() || !sound ? std::vector<double>{100.0} : prices;
}

ShopProduct read_product(ShopRecord& record) {
  ShopProduct product{.asin = record.text("asin"),
                      .category = record.text("category"),
                      .query = python_lower(stripped(record.text("query"))),
                      .product_category = record.text("product_category"),
                      .title = record.text("name"),
                      .description = record.text_or_empty("full_description")};
  const ShopJson* bullets = record.member("small_description");
  if (bullets != nullptr && bullets->is_string()) {
    product.bullets = {bullets->get<std::string>()};
  } else {
    product.bullets = record.texts_or_empty("small_description");
  }
  product.pricing = read_pricing(record);
  product.options = read_options(record);
  return product;
}

bool is_passed_over(const std::string& asin) { return asin == "nan" || count_characters(asin) > 10; }

/// Gathers products, and the problems of the first twenty records that have any.
class ProductReader {
 public:
  ProductReader(const std::string& name, std::size_t most) : name_(name), most_(most) {}

  bool full() const { return most_ > 0 && records_ >= most_; }

  void take(std::string_view text) {
    if (full()) return;
    ++records_;
    const std::string where = name_ + ": product " + std::to_string(records_);
    const auto parsed = parse_json_object<ShopJson>(text, where);
    if (!parsed) return add_problems({parsed.error().message});
    const auto inner = parsed->find("product");
    ShopRecord record(inner != parsed->end() && inner->is_object() ? *inner : *parsed, where);
    ShopProduct product = read_product(record);
    if (!record.problems().empty()) return add_problems(record.problems());
    if (is_passed_over(product.asin) || !seen_.insert(product.asin).second) return;
    products_.push_back(std::move(product));
  }

  Result<std::vector<ShopProduct>> finish() {
    if (!problems_.empty()) return join_errors(problems_);
    if (products_.empty()) return Error{name_ + ": holds no product"};
    return std::move(products_);
  }

 private:
  void add_problems(const std::vector<std::string>& problems) {
    for (const std::string& problem : problems)
      if (problems_.size() < kMaxProblems) problems_.push_back(problem);
  }

  const std::string& name_;
  std::size_t most_;
  std::size_t records_ = 0;
  std::unordered_set<std::string> seen_{};
  std::vector<ShopProduct> products_{};
  std::vector<std::string> problems_{};
};

Status each_line(std::istream& in, ProductReader& reader) {
  for (std::string line; !reader.full();) {
    CARNOT_ASSIGN_OR_RETURN(const auto got, read_line(in, line));
    if (!got) return Done{};
    if (!stripped(line).empty()) reader.take(line);
  }
  return Done{};
}

/// Calls visit(value, where, product) for each ASIN of the object that is the name of a product.
Status for_each_known(std::istream& in, const std::string& name, std::vector<ShopProduct>& products,
                      const std::function<Status(const ShopJson&, const std::string&, ShopProduct&)>& visit) {
  std::unordered_map<std::string_view, ShopProduct*> known;
  for (ShopProduct& product : products) known.emplace(product.asin, &product);
  return for_each_json_part(in, name, [&](std::string_view text) -> Status {
    CARNOT_ASSIGN_OR_RETURN(const auto parsed, parse_json_object<ShopJson>(text, name));
    for (const auto& [asin, value] : parsed.items())
      if (const auto at = known.find(asin); at != known.end())
        CARNOT_RETURN_IF_ERROR(visit(value, name + ": " + asin, *at->second));
    return Done{};
  });
}

/// A stream of the file's text, decompressed where its name ends in .xz.
Result<std::unique_ptr<std::istream>> open_text(const fs::path& path) {
  if (path.extension() == ".xz") {
    CARNOT_ASSIGN_OR_RETURN(auto text, read_maybe_compressed(path));
    return std::unique_ptr<std::istream>(std::make_unique<std::istringstream>(std::move(text)));
  }
  CARNOT_RETURN_IF_ERROR(open_regular_file(path));
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file) return Error{path.string() + ": cannot be opened"};
  return std::unique_ptr<std::istream>(std::move(file));
}

Status find_file(const fs::path& folder, const std::vector<std::string>& names, const std::string& what,
                 fs::path& path) {
  if (!path.empty()) return Done{};
  std::string tried;
  for (const std::string& name : names)
    for (const std::string& ending : {std::string(), std::string(".xz")}) {
      path = folder / (name + ending);
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return Done{};
      tried += (tried.empty() ? "" : ", ") + name + ending;
    }
  path.clear();
  return Error{folder.string() + ": holds no " + what + "; expected one of " + tried};
}

}  // namespace

std::string ShopProduct::price_text() const {
  const auto dollars = [](double price) { return "$" + python_number({.value = price}); };
  return pricing.size() == 1 ? dollars(pricing[0]) : dollars(pricing[0]) + " to " + dollars(pricing[1]);
}

std::string ShopProduct::indexed_text() const {
  std::string text = title + " " + description + " " + (bullets.empty() ? "" : bullets.front()) + " ";
  bool first = true;
  for (const ShopOption& option : options) {
    text += (first ? "" : ", and ") + option.name + ": ";
    for (std::size_t i = 0; i < option.values.size(); ++i) text += (i == 0 ? "" : ", ") + option.values[i];
    first = false;
  }
  return python_lower(text);
}

std::vector<double> parse_shop_prices(std::string_view text) {
  std::vector<double> prices;
  for (auto dollar = text.find('$'); dollar != std::string_view::npos && prices.size() < 2;) {
    const auto next = text.find('$', dollar + 1);
    std::string digits;
    for (const char c : text.substr(dollar + 1, next == std::string_view::npos ? next : next - dollar - 1))
      if ((c >= '0' && c <= '9') || c == '.') digits += c;
    dollar = next;
    char* end = nullptr;
    const double price = std::strtod(digits.c_str(), &end);
    if (!digits.empty() && *end == '\0') prices.push_back(price);
  }
  return prices;
}

Result<ShopFiles> find_shop_files(const fs::path& folder, const ShopFiles& chosen) {
  ShopFiles files = chosen;
  std::vector<std::string> problems;
  const auto look = [&](const std::vector<std::string>& names, const std::string& what, fs::path& path) {
    if (const Status status = find_file(folder, names, what, path); !status) problems.push_back(status.error().message);
  };
  look({"items_shuffle.json", "products.jsonl", "items_shuffle_1000.json"}, "file of products", files.products);
  const bool all = files.products.filename().string().starts_with("items_shuffle.json");
  const std::string of_all = "items_ins_v2.json", of_1000 = "items_ins_v2_1000.json";
  look({all ? of_all : of_1000, all ? of_1000 : of_all}, "file of attributes", files.attributes);
  if (const Status human = find_file(folder, {"items_human_ins.json", "human_instructions.json"}, "", files.human);
      !human)
    files.human.clear();
  if (!problems.empty()) return join_errors(problems);
  return files;
}

Result<std::vector<ShopProduct>> parse_shop_products(std::istream& in, const std::string& name, std::size_t most) {
  ProductReader reader(name, most);
  while (in.peek() == ' ' || in.peek() == '\n' || in.peek() == '\t' || in.peek() == '\r') in.get();
  if (in.peek() == '{') {
    if (const Status status = each_line(in, reader); !status) return Error{name + ": " + status.error().message};
    return reader.finish();
  }
  bool stopped = false;
  const Status status = for_each_json_part(in, name, [&](std::string_view text) -> Status {
    stopped = reader.full();
    if (stopped) return Error{"enough"};
    reader.take(text);
    return Done{};
  });
  if (!status && !stopped) return status.error();
  return reader.finish();
}

Status add_shop_attributes(std::istream& in, const std::string& name, std::vector<ShopProduct>& products) {
  return for_each_known(
      in, name, products, [](const ShopJson& value, const std::string& where, ShopProduct& product) -> Status {
        if (!value.is_object()) return Error{where + ": expected an object, found " + shown(nlohmann::json(value))};
        ShopRecord record(value, where);
        if (record.member("attributes") != nullptr) product.attributes = record.texts_or_empty("attributes");
        product.instruction = record.text_or_empty("instruction");
        product.instruction_attributes = record.texts_or_empty("instruction_attributes");
        if (!product.instruction.empty() && product.instruction_attributes.empty())
          record.problem("instruction_attributes", "at least one text", record.member("instruction_attributes"));
        if (!record.problems().empty()) return join_errors(record.problems());
        return Done{};
      });
}

Status add_human_instructions(std::istream& in, const std::string& name, std::vector<ShopProduct>& products) {
  return for_each_known(in, name, products,
                        [](const ShopJson& value, const std::string& where, ShopProduct& product) -> Status {
                          if (!value.is_array())
                            return Error{where + ": expected a list, found " + shown(nlohmann::json(value))};
                          product.human_instructions.clear();
                          for (const ShopJson& element : value) {
                            if (!element.is_object())
                              return Error{where + ": expected objects, found " + shown(nlohmann::json(element))};
                            ShopRecord record(element, where);
                            HumanInstruction instruction{.text = record.text("instruction"),
                                                         .attributes = record.texts_or_empty("instruction_attributes"),
                                                         .options = record.texts_or_empty("instruction_options")};
                            if (!record.problems().empty()) return join_errors(record.problems());
                            product.human_instructions.push_back(std::move(instruction));
                          }
                          return Done{};
                        });
}

Result<std::vector<ShopProduct>> read_shop_products(const ShopFiles& files, std::size_t most) {
  CARNOT_ASSIGN_OR_RETURN(auto in, open_text(files.products));
  CARNOT_ASSIGN_OR_RETURN(auto products, parse_shop_products(*in, files.products.string(), most));
  CARNOT_ASSIGN_OR_RETURN(in, open_text(files.attributes));
  CARNOT_RETURN_IF_ERROR(add_shop_attributes(*in, files.attributes.string(), products));
  if (files.human.empty()) return products;
  CARNOT_ASSIGN_OR_RETURN(in, open_text(files.human));
  CARNOT_RETURN_IF_ERROR(add_human_instructions(*in, files.human.string(), products));
  return products;
}

}  // namespace carnot
