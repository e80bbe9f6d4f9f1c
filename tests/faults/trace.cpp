#include "trace.h"

#include <sstream>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"

namespace carnot::testing {

std::vector<TracedCall> read_trace(const std::filesystem::path& path) {
  std::istringstream in(read_file(path).value());
  std::vector<TracedCall> calls;
  std::string head;
  while (std::getline(in, head)) {
    std::istringstream fields(head);
    TracedCall call;
    std::size_t length = 0;
    std::getline(fields, call.name, '\t');
    fields >> call.result >> call.inode >> call.offset >> length;
    fields.ignore(1);
    std::getline(fields, call.path, '\t');
    std::getline(fields, call.second);
    CARNOT_CHECK(!call.name.empty(), head);
    if (length > 0) {
      call.data.resize(length);
      in.read(call.data.data(), static_cast<std::streamsize>(length));
      in.ignore(1);
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

bool changes_disk(const TracedCall& call) {
  if (call.name == "open") return call.offset != static_cast<long>(Opened::Existing);
  return call.name != "look" && call.name != "read" && call.name != "close";
}

bool takes_space(const TracedCall& call) {
  return call.name == "write" || call.name == "mkdir" || call.name == "symlink" ||
         (call.name == "open" && call.offset != static_cast<long>(Opened::Existing));
}

std::string text_of(const TracedCall& call, const std::filesystem::path& folder) {
  return call.name + " " + std::filesystem::path(call.path).lexically_relative(folder).string();
}

}  // namespace carnot::testing
