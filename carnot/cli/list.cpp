#include "carnot/cli/list.h"

#include <nlohmann/json.hpp>

#include "carnot/cli/terminal_text.h"
#include "carnot/env/environment.h"
#include "carnot/method/method.h"
#include "carnot/text/chat.h"

namespace carnot {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

std::string written(const Json& json) { return json.dump(2) + "\n"; }

std::string place_of(const MethodEntry& entry) {
  if (entry.is_base && entry.is_add_on) return "base or add-on";
  return entry.is_base ? "base" : "add-on";
}

/// The default first.
Json presets_json(const MethodEntry& entry) {
  Json presets = Json::array();
  for (const PresetEntry& preset : entry.presets)
    presets.push_back({{"name", name_of(preset.preset)}, {"sets", preset.sets}});
  return presets;
}

Json methods_json() {
  Json list = Json::array();
  for (const MethodEntry& entry : methods())
    list.push_back({{"name", entry.name},
                    {"paper", entry.paper},
                    {"base", entry.is_base},
                    {"add_on", entry.is_add_on},
                    {"summary", entry.summary},
                    {"presets", presets_json(entry)}});
  return list;
}

Rows method_rows() {
  Rows rows;
  for (const MethodEntry& entry : methods()) {
    const std::string paper = entry.paper.empty() ? "" : "arXiv:" + std::string(entry.paper);
    rows.push_back({std::string(entry.name), place_of(entry), paper, std::string(entry.summary)});
  }
  return rows;
}

Rows preset_rows() {
  Rows rows;
  for (const MethodEntry& entry : methods())
    for (const PresetEntry& preset : entry.presets)
      rows.push_back({std::string(entry.name), std::string(name_of(preset.preset)), std::string(preset.sets)});
  return rows;
}

std::string method_tables() {
  return text_table(method_rows()) + "\npresets, the default first (method.NAME.preset):\n" + text_table(preset_rows());
}

Json environments_json() {
  Json list = Json::array();
  for (const EnvironmentEntry& entry : environments())
    list.push_back({{"name", entry.name}, {"summary", entry.summary}});
  return list;
}

Rows environment_rows() {
  Rows rows;
  for (const EnvironmentEntry& entry : environments())
    rows.push_back({std::string(entry.name), std::string(entry.summary)});
  return rows;
}

Rows chat_rows() {
  Rows rows;
  for (const std::string& name : chat_family_names()) rows.push_back({name});
  return rows;
}

}  // namespace

std::string list_methods(bool json) { return json ? written(methods_json()) : method_tables(); }

std::string list_environments(bool json) {
  return json ? written(environments_json()) : text_table(environment_rows());
}

std::string list_chats(bool json) { return json ? written(Json(chat_family_names())) : text_table(chat_rows()); }

std::string list_everything(bool json) {
  if (json)
    return written(
        {{"methods", methods_json()}, {"environments", environments_json()}, {"chats", chat_family_names()}});
  return "methods:\n" + method_tables() + "\nenvironments:\n" + text_table(environment_rows()) +
         "\nchat families:\n" + text_table(chat_rows());
}

std::string list_keys(const FieldTable& table, bool json) {
  if (!json) return help_text(table);
  Json list = Json::array();
  for (const FieldRow& row : table.rows())
    list.push_back(
        {{"key", row.key}, {"type", row.type}, {"default", row.value}, {"accepts", row.accepts}, {"help", row.help}});
  return written(list);
}

}  // namespace carnot
