#include "carnot/worlds/webshop/json_parts.h"

#include <array>
#include <istream>

#include "carnot/core/base/limits.h"

namespace carnot {
namespace {

bool is_json_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class JsonPartScanner {
 public:
  JsonPartScanner(const std::string& name, const std::function<Status(std::string_view)>& visit)
      : name_(name), visit_(visit) {}

  Status take(char c) {
    if (state_ == State::Before) return begin(c);
    if (state_ == State::Behind)
      return is_json_blank(c) ? Status(Done{}) : Error{name_ + ": text behind the closing bracket"};
    if (in_string_) {
      part_ += c;
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
    } else if (depth_ == 0 && (c == ',' || c == ']' || c == '}')) {
      return end_part(c);
    } else if (part_.size() > (object_ ? 1u : 0u) || !is_json_blank(c)) {
      part_ += c;
      in_string_ = c == '"';
      depth_ += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    }
    if (part_.size() > kMaxJsonBytes)
      return Error{name_ + ": part " + std::to_string(parts_ + 1) + " has more than " + std::to_string(kMaxJsonBytes) +
                   " bytes"};
    return Done{};
  }

  Status end() const {
    if (state_ == State::Behind) return Done{};
    return Error{name_ + (state_ == State::Before ? ": expected a JSON array or object, found nothing"
                                                  : ": ends before the closing bracket")};
  }

 private:
  enum class State { Before, Inside, Behind };

  Status begin(char c) {
    if (is_json_blank(c)) return Done{};
    if (c != '[' && c != '{') return Error{name_ + ": expected a JSON array or object"};
    state_ = State::Inside;
    object_ = c == '{';
    if (object_) part_ = "{";
    return Done{};
  }

  Status end_part(char c) {
    const bool last = c != ',';
    if (last && (c == '}') != object_) return Error{name_ + ": the closing bracket is of the other kind"};
    const bool empty = part_ == (object_ ? "{" : "");
    if (last) state_ = State::Behind;
    if (last && empty && parts_ == 0) return Done{};
    if (object_) part_ += '}';
    ++parts_;
    const Status status = visit_(part_);
    part_ = object_ ? "{" : "";
    return status;
  }

  const std::string& name_;
  const std::function<Status(std::string_view)>& visit_;
  State state_ = State::Before;
  bool object_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  int depth_ = 0;
  std::size_t parts_ = 0;
  std::string part_{};
};

}  // namespace

Status for_each_json_part(std::istream& in, const std::string& name,
                          const std::function<Status(std::string_view)>& visit) {
  JsonPartScanner scanner(name, visit);
  std::array<char, 1 << 16> buffer;
  while (in.read(buffer.data(), buffer.size()), in.gcount() > 0)
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(in.gcount())))
      CARNOT_RETURN_IF_ERROR(scanner.take(c));
  if (in.bad()) return Error{name + ": cannot read"};
  return scanner.end();
}

}  // namespace carnot
