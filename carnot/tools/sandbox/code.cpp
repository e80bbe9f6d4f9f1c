#include "carnot/tools/sandbox/code.h"

namespace carnot {

std::string_view word_of(CodeStatus status) {
  switch (status) {
    case CodeStatus::Ok: return "ok";
    case CodeStatus::Error: return "error";
    case CodeStatus::Timeout: return "timeout";
    case CodeStatus::Memory: return "memory";
    case CodeStatus::Refused: return "refused";
  }
  return "error";
}

}  // namespace carnot
