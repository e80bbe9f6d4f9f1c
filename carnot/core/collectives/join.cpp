#include "carnot/core/collectives/join.h"

namespace carnot {
namespace {

JoinRanks offered = nullptr;

}  // namespace

void offer_ranks(JoinRanks join) { offered = join; }

Result<std::unique_ptr<Collectives>> join_ranks(const RankSetting& setting, const ProcessGroupOptions& options) {
  if (setting.size == 1) return std::unique_ptr<Collectives>(std::make_unique<OneProcess>());
  if (offered == nullptr)
    return Error{"a launcher started " + std::to_string(setting.size) +
                 " ranks, and this build of carnot trains in one process; `./run build` adds ranks"};
  return offered(setting, options);
}

}  // namespace carnot
