#include "values.h"

#include <cmath>
#include <cstdint>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"

namespace carnot::python {
namespace {

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

[[noreturn]] void refuse(const std::string& where, const std::string& found) {
  throw nb::type_error(
      (where + ": expected a number, a string, a list, a dict, an array or None, found " + found).c_str());
}

std::string type_of(nb::handle value) { return nb::cast<std::string>(nb::str(nb::type_name(value.type()))); }

template <class Number>
Json list_of(nb::handle array) {
  Json list = Json::array();
  const auto view = nb::cast<nb::ndarray<const Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(array);
  for (std::size_t i = 0; i < view.shape(0); ++i) {
    if constexpr (std::is_same_v<Number, double>)
      list.push_back(number(view.data()[i]));
    else if constexpr (std::is_same_v<Number, bool>)
      list.push_back(view.data()[i] ? 1 : 0);
    else
      list.push_back(view.data()[i]);
  }
  return list;
}

Json json_of_array(nb::handle value, const std::string& where) {
  const auto array = nb::cast<AnyArray>(value);
  if (array.ndim() == 0) return json_of(value.attr("item")(), where);
  if (array.ndim() != 1)
    refuse(where, "an array of " + std::to_string(array.ndim()) + " dimensions, and an array has one");
  const auto code = static_cast<nb::dlpack::dtype_code>(array.dtype().code);
  if (code == nb::dlpack::dtype_code::Bool) return list_of<bool>(value);
  if (code == nb::dlpack::dtype_code::Int) return list_of<std::int64_t>(value);
  if (code == nb::dlpack::dtype_code::UInt) return list_of<std::uint64_t>(value);
  if (code == nb::dlpack::dtype_code::Float) return list_of<double>(value);
  refuse(where, "an array of neither numbers nor truth values");
}

Json json_of_mapping(nb::handle value, const std::string& where) {
  Json object = Json::object();
  for (const auto& [key, entry] : nb::borrow<nb::dict>(value)) {
    if (!nb::isinstance<nb::str>(key)) refuse(where, "a key of type " + type_of(key));
    const auto name = nb::cast<std::string>(key);
    object[name] = json_of(entry, where.empty() ? name : where + "." + name);
  }
  return object;
}

}  // namespace

Json json_of(nb::handle value, const std::string& where) {
  if (value.is_none()) return Json();
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<std::int64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return number(nb::cast<double>(value));
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::dict>(value)) return json_of_mapping(value, where);
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    Json list = Json::array();
    for (const nb::handle entry : nb::iter(value))
      list.push_back(json_of(entry, where + "[" + std::to_string(list.size()) + "]"));
    return list;
  }
  if (nb::ndarray_check(value)) return json_of_array(value, where);
  if (nb::hasattr(value, "item")) return json_of(value.attr("item")(), where);  // a NumPy scalar
  refuse(where, type_of(value));
}

std::vector<std::string> settings_of(const nb::dict& options) {
  std::vector<std::string> settings;
  for (const auto& [key, value] : options) {
    const auto name = nb::cast<std::string>(key);
    const bool is_text = nb::isinstance<nb::str>(value);
    settings.push_back(name + "=" + (is_text ? nb::cast<std::string>(value) : json_of(value, name).dump()));
  }
  return settings;
}

void raise(const Error& error) {
  std::string message;
  for (const std::string_view line : split_lines(error.message)) {
    constexpr std::string_view kCommandLine = "command line: ";
    const bool of_options = line.substr(0, kCommandLine.size()) == kCommandLine;
    message += message.empty() ? "" : "\n";
    message += of_options ? "options: " + std::string(line.substr(kCommandLine.size())) : std::string(line);
  }
  throw nb::value_error(message.c_str());
}

Numbers array_over(std::vector<double>& values, nb::handle owner) {
  return Numbers(values.data(), {values.size()}, owner);
}

std::vector<double> vector_of(const NumbersIn& values) { return {values.data(), values.data() + values.shape(0)}; }

}  // namespace carnot::python
