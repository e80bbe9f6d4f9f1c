#include "carnot/core/cli/list.h"

#include <algorithm>

#include "carnot/core/base/json.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/cli/terminal_text.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/method/method.h"
#include "carnot/core/text/chat_families.h"

namespace carnot {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string written(const OrderedJson& json) { return json.dump(2) + "\n"; }

std::string place_of(const MethodEntry& entry) {
  if (entry.is_base() && entry.is_add_on()) return "base or add-on";
  return entry.is_base() ? "base" : "add-on";
}

/// The default first.
OrderedJson presets_json(const MethodEntry& entry) {
  OrderedJson presets = OrderedJson::array();
  for (const PresetEntry& preset : entry.presets())
    presets.push_back({{"name", name_of(preset.preset)}, {"sets", preset.sets}});
  return presets;
}

OrderedJson methods_json() {
  OrderedJson list = OrderedJson::array();
  for (const MethodEntry& entry : methods())
    list.push_back({{"name", entry.name},
                    {"paper", entry.paper},
                    {"base", entry.is_base()},
                    {"add_on", entry.is_add_on()},
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
    for (const PresetEntry& preset : entry.presets())
      rows.push_back({std::string(entry.name), std::string(name_of(preset.preset)), std::string(preset.sets)});
  return rows;
}

std::string method_tables() {
  return text_table(method_rows()) + "\npresets, the default first (method.NAME.preset):\n" + text_table(preset_rows());
}

OrderedJson environments_json() {
  OrderedJson list = OrderedJson::array();
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

Result<std::string> list_methods(const ListRequest& request) {
  return request.json ? written(methods_json()) : method_tables();
}

Result<std::string> list_environments(const ListRequest& request) {
  return request.json ? written(environments_json()) : text_table(environment_rows());
}

Result<std::string> list_chats(const ListRequest& request) {
  return request.json ? written(OrderedJson(chat_family_names())) : text_table(chat_rows());
}

/// The three of them.
Result<std::string> list_everything(bool json) {
  if (json)
    return written(
        {{"methods", methods_json()}, {"environments", environments_json()}, {"chats", chat_family_names()}});
  return "methods:\n" + method_tables() + "\nenvironments:\n" + text_table(environment_rows()) + "\nchat families:\n" +
         text_table(chat_rows());
}

class ListCommand final : public Command {
 public:
  explicit ListCommand(const std::vector<ListTopic>& further) {
    topics_.insert(topics_.end(), further.begin(), further.end());
  }

  void declare(OptionParser& take) override {
    std::vector<std::string> names;
    for (const ListTopic& topic : topics_) names.push_back(topic.name);
    take.operand("TOPIC", topic_, names, "what to print; default: the first three");
    take.operand("DIR", folder_, "runs: the folder that holds them; default: runs", Presence::Optional);
    take.flag("--json", request_.json, "print JSON");
  }

  Exit run(const Console& console) override {
    if (!folder_.empty() && topic_ != "runs")
      return report(console, {"list: expected no further argument, found '" + folder_.string() + "'"}, Exit::Usage);
    if (!folder_.empty()) request_.folder = folder_;
    const auto topic = std::ranges::find(topics_, topic_, &ListTopic::name);
    if (topic != topics_.end() && topic->print == nullptr)
      return report(console, {"list " + topic_ + ": not in this build of carnot; `./run build` adds it"});
    return print(topic == topics_.end() ? list_everything(request_.json) : topic->print(request_), console);
  }

 private:
  std::vector<ListTopic> topics_{{"methods", list_methods}, {"environments", list_environments}, {"chats", list_chats}};
  std::string topic_;
  std::filesystem::path folder_;
  ListRequest request_;
};

}  // namespace

CommandEntry list_entry(const std::vector<ListTopic>& further) {
  return {.name = "list",
          .arguments = "[methods|environments|chats|analyses|keys|runs [DIR]]",
          .summary = "what there is to choose from; runs and how far they are",
          .example = "runs runs/compare",
          .make = [further] { return std::make_unique<ListCommand>(further); }};
}

}  // namespace carnot
